// The checkpoints of one audit: those that the service shows, alone or within proofs, and those that the caller has kept. All of them have to be
// of one log that only grows, and the largest is what the log is held to: an earlier one may be shown in its place.
import { parseCheckpoint } from '../../tlog/checkpoint.ts';
import { forkProofByTiles } from '../../tlog/misbehaviour.ts';
import { parseNote, signatureBy, toNoteKey } from '../../tlog/note.ts';
import type { Policy } from '../../tlog/policy.ts';
import { openCheckpoint, type SignedCheckpoint } from '../../tlog/proof.ts';
import { Unreachable, UnusableInput } from '../line/input.ts';
import { type ProofFolder, provedBy } from '../receipts/proof-folder.ts';
import { type LogKey, orUndefined, type ServiceLog } from './service-log.ts';

export interface CheckpointOptions {
  /** Checkpoints that were kept. */
  readonly keptNotes: readonly string[];
  readonly witnessPolicy?: Policy | undefined;
  readonly proofs: ProofFolder;
}

export class Checkpoints {
  readonly options: CheckpointOptions;
  readonly #published: ServiceLog;
  readonly #seen = new Map<string, SignedCheckpoint>();
  /** What the caller has to decide about those that were kept. */
  readonly doubts: string[] = [];

  constructor(published: ServiceLog, options: CheckpointOptions) {
    this.#published = published;
    this.options = options;
  }

  /** Returns the log that the service publishes; throws UnusableInput if the caller trusts others. */
  async find(): Promise<LogKey | undefined> {
    const log = await this.#published.find();
    const known = this.options.witnessPolicy?.logs ?? [];
    if (log === undefined || known.length === 0 || this.isTrusted(log)) return log;
    throw new UnusableInput('--witnesses names other logs than that of the service');
  }

  /** Whether the caller names the log by its key and its origin. */
  isTrusted({ key }: LogKey): boolean {
    return (
      this.options.witnessPolicy?.logs.some(({ keyId, name }) => keyId === key.keyId && name === key.name) === true
    );
  }

  /** Another checkpoint of this audit, or the same one with other cosignatures. */
  take(checkpoint: SignedCheckpoint): void {
    const { text } = checkpoint.note;
    const known = this.#seen.get(text);
    if (known === undefined || !this.isCosigned(known)) this.#seen.set(text, checkpoint);
  }

  /** The witnesses of the caller's policy that have cosigned it. */
  cosignersOf({ note }: SignedCheckpoint): readonly string[] {
    const { witnesses = [] } = this.options.witnessPolicy ?? {};
    return witnesses.filter(({ key }) => signatureBy(key, note) !== undefined).map(({ name }) => name);
  }

  /** Whether they are a quorum; so it is where the caller names none. */
  isCosigned(checkpoint: SignedCheckpoint): boolean {
    const { witnessPolicy } = this.options;
    return witnessPolicy === undefined || witnessPolicy.isQuorum(new Set(this.cosignersOf(checkpoint)));
  }

  /** The size of the largest one that a quorum has cosigned; everything is where the caller needs no cosignature. */
  get cosignedSize(): number {
    if (this.options.witnessPolicy?.isQuorum(new Set()) !== false) return Number.POSITIVE_INFINITY;
    return Math.max(0, ...[...this.#seen.values()].filter((each) => this.isCosigned(each)).map(({ size }) => size));
  }

  /** Reads the one that is served now, and returns the largest of all. A cache may have an earlier one for a second. */
  async newest(log: LogKey): Promise<SignedCheckpoint | undefined> {
    await this.#readServed(log);
    const kept = this.options.keptNotes.flatMap((note) => openCheckpoint(note, log.key) ?? []);
    return largest([...kept, ...this.#seen.values()]);
  }

  async #readServed(log: LogKey): Promise<string | undefined> {
    const note = await this.#published.checkpoint(log).catch(orUndefined);
    const served = note === undefined ? undefined : openCheckpoint(note, log.key);
    if (served !== undefined) this.take(served);
    if (note === undefined) return 'the service shows no checkpoint';
    return served === undefined ? 'the service’s checkpoint is not signed by its key' : undefined;
  }

  /** What is wrong between them: sentences, with the file that proves each. */
  async problems(): Promise<readonly string[]> {
    const { keptNotes } = this.options;
    const log = await this.find();
    if (log === undefined) return this.#problemsWithoutLog();
    const problem = await this.#readServed(log);
    const newest = largest([...this.#seen.values()]);
    const problems: string[] = [];
    const isUnsigned = problem !== undefined && !problem.endsWith('no checkpoint');
    if (problem !== undefined && (isUnsigned || newest !== undefined || keptNotes.length > 0))
      problems.push(newest === undefined ? problem : `${problem}, and has signed one of size ${newest.size}`);
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
      ...(keptNotes.length > 0 ? ['the service publishes no log, and you have kept checkpoints of one'] : []),
      ...(named === undefined ? [] : [`the service publishes no log, and --witnesses names ${named}`]),
    ];
  }

  async #problemsOfKept(log: LogKey, note: string, newest: SignedCheckpoint | undefined): Promise<readonly string[]> {
    const kept = openCheckpoint(note, log.key);
    if (kept !== undefined) {
      if (newest === undefined) return [];
      return kept.size > newest.size
        ? [`the service shows a checkpoint of size ${newest.size}, and has signed one of size ${kept.size} before`]
        : await this.#contradictions(log, kept, newest);
    }
    const { origin = 'none', size = 0 } = parseCheckpoint(parseNote(note)?.text ?? '') ?? {};
    const { type, publicKey } = log.key;
    if (openCheckpoint(note, toNoteKey(origin, type, publicKey)) === undefined)
      throw new UnusableInput(
        `--checkpoints: that of ${origin}, size ${size}, is not signed by the key of ${log.key.name}`,
      );
    this.doubts.push(
      `the key of ${log.key.name} has signed a checkpoint of size ${size} of another log as well, ${origin}: leave out --checkpoints of that log if its operator has announced that the service continues as another one`,
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
      return [
        `the service’s tiles are not those of its checkpoint of size ${newest.size}: ${(error as Error).message}`,
      ];
    }
  }
}

function largest(checkpoints: readonly SignedCheckpoint[]): SignedCheckpoint | undefined {
  return checkpoints.reduce<SignedCheckpoint | undefined>(
    (one, other) => (one === undefined || other.size > one.size ? other : one),
    undefined,
  );
}
