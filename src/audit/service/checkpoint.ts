// Compares a chamber's lines with the log that the service publishes: its last event, which pins all before it, is under the newest
// checkpoint, and that extends the checkpoints that the caller has kept.
import { parseCheckpoint } from '../../tlog/checkpoint.ts';
import { COVERED_SECONDS_MAX, forkProofByTiles } from '../../tlog/misbehaviour.ts';
import { formatNote, parseNote, signatureBy } from '../../tlog/note.ts';
import type { Policy } from '../../tlog/policy.ts';
import { isPinned, openCheckpoint, type SignedCheckpoint, UNPINNED, verifyTlogProof } from '../../tlog/proof.ts';
import { fromHex } from '../../vocabulary/values.ts';
import type { WatchedAccounts } from '../account/watched-accounts.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import { Unreachable, UnusableInput } from '../line/input.ts';
import { type ProofFolder, provedBy } from '../receipts/proof-folder.ts';
import type { Reason } from '../report/findings.ts';
import { problemOfHead } from './log-accounting.ts';
import type { LogKey, ServiceLog } from './service-log.ts';

const COVERED_MS_MAX = COVERED_SECONDS_MAX * 1_000;

export interface CheckpointOptions {
  /** Checkpoints that were kept. */
  readonly keptNotes: readonly string[];
  readonly witnessPolicy?: Policy | undefined;
  readonly proofs: ProofFolder;
}

/** The published log of one service. */
export class CheckpointAudit {
  readonly #log: ServiceLog;
  readonly #options: CheckpointOptions;
  /** The checkpoints of this audit. All of them have to be of one log. */
  readonly #seen = new Map<string, SignedCheckpoint>();

  constructor(log: ServiceLog, options: CheckpointOptions) {
    this.#log = log;
    this.#options = options;
  }

  /** `unexplained` is what the entries of the log show of the chamber's lines, or why they were not read. */
  async compare(
    { findings, head, pinnedKeys }: ChamberAudit,
    chamberId: number,
    unexplained: string | Reason | undefined,
  ): Promise<void> {
    const log = await this.#find();
    if (log === undefined) {
      const why = 'the service publishes no log';
      return findings.notEvaluated({ needs: 'service', why }, 'checkpoint', 'witnesses');
    }
    const { eventId, leaf, at } = head;
    const text = await this.#log.tlogProof(chamberId, eventId);
    if (text === undefined) {
      const isLate = Date.now() - at > COVERED_MS_MAX;
      const what = `event ${eventId} is under no checkpoint`;
      const late = isLate ? `${what}, although it is more than a minute old` : undefined;
      const problem = typeof unexplained === 'string' ? unexplained : late;
      if (problem !== undefined) findings.judge('checkpoint', [], problem);
      else findings.notEvaluated({ needs: 'later lines', why: `${what} yet` }, 'checkpoint');
      return findings.notEvaluated({ needs: 'later lines', why: `${what} yet` }, 'witnesses');
    }
    const checkpoint = verifyTlogProof(text, fromHex(leaf), log.key);
    if (checkpoint !== undefined) this.take(checkpoint);
    const unproved = `the service does not prove that event ${eventId} of the lines is in its log`;
    const problem = checkpoint === undefined ? unproved : typeof unexplained === 'string' ? unexplained : undefined;
    if (typeof unexplained === 'object') findings.notEvaluated(unexplained, 'checkpoint');
    if (problem === undefined && !isPinned(log.key, pinnedKeys))
      findings.notEvaluated({ needs: 'later lines', why: UNPINNED }, 'checkpoint');
    else findings.judge('checkpoint', [], problem ?? false);
    this.#judgeWitnesses(findings, checkpoint);
  }

  #judgeWitnesses(findings: ChamberAudit['findings'], checkpoint: SignedCheckpoint | undefined): void {
    const { witnessPolicy: policy } = this.#options;
    if (policy === undefined || checkpoint === undefined) {
      const reason: Reason =
        policy === undefined
          ? { needs: 'witnesses', why: 'use --witnesses to name those that you trust' }
          : { follows: ['checkpoint'], why: 'there is no valid checkpoint' };
      findings.notEvaluated(reason, 'witnesses');
      return;
    }
    const cosigners = policy.witnesses.filter(({ key }) => signatureBy(key, checkpoint.note) !== undefined);
    const isMet = policy.isQuorum(new Set(cosigners.map(({ name }) => name)));
    const problem = `the checkpoint of size ${checkpoint.size} is cosigned by ${cosigners.length} of ${policy.witnesses.length} witnesses, which is no quorum`;
    findings.judge('witnesses', [], !isMet && problem);
  }

  /** What is wrong between the checkpoints that were kept, or shown in this audit, and the newest one: sentences, with the file that proves each. */
  async problems(): Promise<readonly string[]> {
    const seen = [...this.#seen.values()];
    const notes = [...this.#options.keptNotes, ...seen.map(({ note }) => formatNote(note))];
    if (notes.length === 0) return [];
    const log = await this.#find();
    if (log === undefined) throw new UnusableInput('--checkpoints: the service publishes no log');
    const note = await this.#log.checkpoint(log);
    const served = openCheckpoint(note, log.key);
    if (served === undefined) return ['the service’s checkpoint is not signed by its key'];
    // A cache may have an earlier one for a second.
    const newest = [served, ...seen].reduce((one, other) => (other.size > one.size ? other : one));
    const problems: string[] = [];
    for (const kept of notes) {
      const problem = await this.#contradiction(log, kept, newest);
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  async #contradiction(log: LogKey, note: string, served: SignedCheckpoint): Promise<string | undefined> {
    const { key, verifierKey } = log;
    const kept = openCheckpoint(note, key);
    if (kept === undefined) {
      const { origin = 'none', size = 0 } = parseCheckpoint(parseNote(note)?.text ?? '') ?? {};
      throw new UnusableInput(
        `--checkpoints: that of ${origin}, size ${size}, is not signed by the key of ${key.name}`,
      );
    }
    if (kept.size > served.size) {
      return `the service shows a checkpoint of size ${served.size}, and has signed one of size ${kept.size} before`;
    }
    try {
      const proof = await forkProofByTiles([kept, served], [verifierKey], (tile) => this.#log.tile(log, tile));
      const written = proof && (await this.#options.proofs.keep(proof));
      return written && provedBy(written);
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      return `the service’s tiles are not those of its checkpoint of size ${served.size}: ${(error as Error).message}`;
    }
  }

  /** What is wrong between the log and the accounts that one chamber was judged by. */
  async problemsOfAccounts(accounts: WatchedAccounts): Promise<readonly string[]> {
    const log = await this.#find();
    const problems: string[] = [];
    for (const did of log === undefined ? [] : accounts.dids) {
      for (const head of accounts.headsOf(did).values()) {
        const problem = log && (await problemOfHead(did, head, this.#log, log));
        if (problem !== undefined) problems.push(problem);
      }
    }
    return problems;
  }

  /** Another checkpoint of this audit. */
  take(checkpoint: SignedCheckpoint): void {
    this.#seen.set(checkpoint.note.text, checkpoint);
  }

  async #find(): Promise<LogKey | undefined> {
    const log = await this.#log.find();
    const known = this.#options.witnessPolicy?.logs ?? [];
    const isKnown =
      log === undefined ||
      known.length === 0 ||
      known.some(({ keyId, name }) => keyId === log.key.keyId && name === log.key.name);
    if (!isKnown) throw new UnusableInput('--witnesses names other logs than that of the service');
    return log;
  }
}

const TEXT_LINES_MIN = 3;

/** The notes in a text, one after the other: lines, an empty one, and lines of signatures. In one pass, as the text may be hostile. */
export function splitNotes(text: string): readonly string[] {
  const notes: string[] = [];
  let lines: string[] = [];
  let signatures: string[] = [];
  let isEnded = false;
  const begin = () => {
    if (signatures.length > 0) notes.push(`${[...lines, '', ...signatures].join('\n')}\n`);
    [lines, signatures, isEnded] = [[], [], false];
  };
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (/^\u2014 ./u.test(line)) {
      if (isEnded) signatures.push(line);
      else begin();
    } else if (line === '' && !isEnded && lines.length >= TEXT_LINES_MIN) isEnded = true;
    else {
      if (line === '' || isEnded) begin();
      if (line !== '') lines.push(line);
    }
  }
  begin();
  return notes;
}
