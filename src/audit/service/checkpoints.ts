// The checkpoints of one audit: those that the service serves, alone or within proofs, and the caller's kept ones. All must belong to
// one log that only grows. The largest is decisive, because a service could serve an earlier one instead.
import { parseCheckpoint } from '../../tlog/checkpoint.ts';
import { forkProofByTiles } from '../../tlog/misbehaviour.ts';
import { parseNote, signatureBy, toNoteKey } from '../../tlog/note.ts';
import type { Policy } from '../../tlog/policy.ts';
import { openCheckpoint, type SignedCheckpoint } from '../../tlog/proof.ts';
import { Unreachable, UnusableInput } from '../line/input.ts';
import { type ProofFolder, provedBy } from '../receipts/proof-folder.ts';
import { type LogKey, orUndefined, type ServiceLog } from './service-log.ts';

export interface CheckpointOptions {
  readonly keptNotes: readonly string[];
  readonly witnessPolicy?: Policy | undefined;
  readonly proofs: ProofFolder;
}

export class Checkpoints {
  readonly options: CheckpointOptions;
  readonly #published: ServiceLog;
  readonly #seen = new Map<string, SignedCheckpoint>();
  readonly doubts: string[] = [];

  constructor(published: ServiceLog, options: CheckpointOptions) {
    this.#published = published;
    this.options = options;
  }

  /** Returns the published log. Throws UnusableInput if the caller trusts only other logs. */
  async find(): Promise<LogKey | undefined> {
    const log = await this.#published.find();
    const known = this.options.witnessPolicy?.logs ?? [];
    if (log === undefined || known.length === 0 || this.isTrusted(log)) return log;
    throw new UnusableInput('--witnesses does not name the service’s log');
  }

  /** Whether the caller's policy names the log. */
  isTrusted({ key }: LogKey): boolean {
    return (
      this.options.witnessPolicy?.logs.some(({ keyId, name }) => keyId === key.keyId && name === key.name) === true
    );
  }

  /** Records a checkpoint, or further cosignatures of a known one. */
  take(checkpoint: SignedCheckpoint): void {
    const { text } = checkpoint.note;
    const known = this.#seen.get(text);
    if (known === undefined || !this.isCosigned(known)) this.#seen.set(text, checkpoint);
  }

  cosignersOf({ note }: SignedCheckpoint): readonly string[] {
    const { witnesses = [] } = this.options.witnessPolicy ?? {};
    return witnesses.filter(({ key }) => signatureBy(key, note) !== undefined).map(({ name }) => name);
  }

  /** Whether a quorum of witnesses cosigned the checkpoint; true if the caller names no witnesses. */
  isCosigned(checkpoint: SignedCheckpoint): boolean {
    const { witnessPolicy } = this.options;
    return witnessPolicy === undefined || witnessPolicy.isQuorum(new Set(this.cosignersOf(checkpoint)));
  }

  /** The size of the largest cosigned checkpoint; infinite if no cosignature is needed. */
  get cosignedSize(): number {
    if (this.options.witnessPolicy?.isQuorum(new Set()) !== false) return Number.POSITIVE_INFINITY;
    return Math.max(0, ...[...this.#seen.values()].filter((each) => this.isCosigned(each)).map(({ size }) => size));
  }

  /** Reads the current checkpoint and returns the largest known one, because a cache may serve an older one for a second. */
  async newest(log: LogKey): Promise<SignedCheckpoint | undefined> {
    await this.#readServed(log);
    const kept = this.options.keptNotes.flatMap((note) => openCheckpoint(note, log.key) ?? []);
    return largest([...kept, ...this.#seen.values()]);
  }

  async #readServed(log: LogKey): Promise<'served' | 'absent' | 'unsigned'> {
    const note = await this.#published.checkpoint(log).catch(orUndefined);
    if (note === undefined) return 'absent';
    const served = openCheckpoint(note, log.key);
    if (served === undefined) return 'unsigned';
    this.take(served);
    return 'served';
  }

  /** Returns contradictions between the checkpoints, each with the file that proves it. */
  async problems(): Promise<readonly string[]> {
    const { keptNotes } = this.options;
    const log = await this.find();
    if (log === undefined) return this.#problemsWithoutLog();
    const served = await this.#readServed(log);
    const newest = largest([...this.#seen.values()]);
    const problems: string[] = [];
    const before = newest === undefined ? '' : `, although it has signed one of size ${newest.size}`;
    if (served === 'unsigned') problems.push(`the service’s checkpoint is not signed by its key${before}`);
    else if (served === 'absent' && (newest !== undefined || keptNotes.length > 0))
      problems.push(`the service shows no checkpoint${before}`);
    for (const note of keptNotes) problems.push(...(await this.#problemsOfKept(log, note, newest)));
    for (const seen of this.#seen.values()) {
      if (newest !== undefined) problems.push(...(await this.#contradictions(log, seen, newest)));
    }
    return problems;
  }

  #problemsWithoutLog(): readonly string[] {
    const { keptNotes, witnessPolicy } = this.options;
    const named = witnessPolicy?.logs[0]?.name;
    return [
      ...(keptNotes.length > 0 ? ['the service publishes no log, but you have kept checkpoints of one'] : []),
      ...(named === undefined ? [] : [`the service publishes no log, but --witnesses names ${named}`]),
    ];
  }

  async #problemsOfKept(log: LogKey, note: string, newest: SignedCheckpoint | undefined): Promise<readonly string[]> {
    const kept = openCheckpoint(note, log.key);
    if (kept !== undefined) {
      if (newest === undefined) return [];
      return kept.size > newest.size
        ? [`the service shows a checkpoint of size ${newest.size}, but had already signed one of size ${kept.size}`]
        : await this.#contradictions(log, kept, newest);
    }
    const { origin = 'none', size = 0 } = parseCheckpoint(parseNote(note)?.text ?? '') ?? {};
    const { type, publicKey } = log.key;
    if (openCheckpoint(note, toNoteKey(origin, type, publicKey)) === undefined)
      throw new UnusableInput(
        `--checkpoints: the checkpoint of ${origin}, size ${size}, is not signed by the key of ${log.key.name}`,
      );
    this.doubts.push(
      `the key of ${log.key.name} has also signed a checkpoint of size ${size} of another log, ${origin}: remove that log from --checkpoints if the operator has announced that the service continues with a new log`,
    );
    return [];
  }

  async #contradictions(log: LogKey, one: SignedCheckpoint, newest: SignedCheckpoint): Promise<readonly string[]> {
    const { verifierKey } = log;
    try {
      const readTile = (tile: Parameters<ServiceLog['tile']>[1]) => this.#published.tile(log, tile);
      const proof = await forkProofByTiles([one, newest], [verifierKey], readTile);
      const written = proof && (await this.options.proofs.keep(proof));
      return written === undefined ? [] : [provedBy(written)];
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      return [`the service’s tiles do not match its checkpoint of size ${newest.size}: ${(error as Error).message}`];
    }
  }
}

function largest(checkpoints: readonly SignedCheckpoint[]): SignedCheckpoint | undefined {
  return checkpoints.reduce<SignedCheckpoint | undefined>(
    (one, other) => (one === undefined || other.size > one.size ? other : one),
    undefined,
  );
}
