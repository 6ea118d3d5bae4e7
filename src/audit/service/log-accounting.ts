// Verifies that entries of the log and lines of listed chambers and accounts correspond one to one, so that a second history of a
// chamber has no entries. The largest signed checkpoint is decisive, and is read again after all chambers were judged. Then each
// stream is read again, and its lines must match the entries and the first read. A line that appears only in the second read must be
// new; otherwise the service withheld it from the checks.
import { setTimeout as sleep } from 'node:timers/promises';
import { entryEvidence } from '../../tlog/entry-evidence.ts';
import { nameOfEvent, nameOfStream, type Stream } from '../../tlog/leaf-index.ts';
import type { SignedCheckpoint } from '../../tlog/proof.ts';
import { COVERED_SECONDS_MAX, type Millis } from '../../vocabulary/values.ts';
import type { StreamHead, WatchedAccounts } from '../account/watched-accounts.ts';
import { type AuditClock, isDue } from '../context.ts';
import { UnusableInput } from '../line/input.ts';
import type { Reason } from '../report/findings.ts';
import { OVERDUE, UNCOSIGNED } from './checkpoint.ts';
import type { Checkpoints } from './checkpoints.ts';
import { BrokenIndex, LogEntries, LogTooLarge } from './log-entries.ts';
import { LoggedStream, type Mismatch } from './logged-stream.ts';
import { type LogKey, POLL_MS, type ServiceLog, WAIT_MS_MAX } from './service-log.ts';
import type { AuditedService } from './service-reader.ts';

const PROBLEMS_MAX = 100;
/** A node that lags behind the published checkpoint will soon have the lines. */
export const READS_MAX = 3;
const GROWTH_MS_MAX = 60_000;
export const READ_PAUSE_MS = 1_000;
const USE_MIRROR = 'chambers mirror shows whether its lines account for each entry';

interface Audited {
  readonly service: AuditedService;
  readonly published: ServiceLog;
  readonly checkpoints: Checkpoints;
  readonly clock: AuditClock;
  /** How long to wait for a log that does not grow, although lines are missing. */
  readonly restMs?: number;
  /** How long to wait for a log that keeps growing, so that a log that grows one leaf at a time can't prolong the audit forever. */
  readonly growthMs?: number;
}

/** Entries that the index attributes to unpublished lines of an earlier release. */
interface Claim {
  readonly count: number;
  /** The index of the last entry. */
  readonly index: number;
  /** The problem to report if the claim is false. */
  readonly otherwise: Mismatch | undefined;
}

export class LogAccounting {
  readonly #audited: Audited;
  readonly #entries = new LogEntries();
  readonly #problems: string[] = [];
  readonly #claims: Claim[] = [];
  /** The last judged lines of each chamber. */
  readonly #chambers = new Map<Stream, readonly StreamHead[]>();
  /** Chambers in lists that were read later. */
  readonly #listed = new Set<number>();
  readonly #withheld: string[] = [];
  /** Lines that a cosigned checkpoint should cover by now, but doesn't. */
  #uncosigned: readonly string[] = [];
  #startedAt = 0;
  /** The index of the first line of a release that publishes every line. */
  #laterFrom = Number.POSITIVE_INFINITY;
  #log: LogKey | undefined;
  #unread: Reason | undefined;
  #isReadable = true;
  #isTooLarge = false;

  constructor(audited: Audited) {
    this.#audited = audited;
  }

  /** Reads the log; must be called before the chambers are read. Returns the reason if the log can't be compared. */
  async begin(): Promise<Reason | undefined> {
    this.#startedAt = this.#audited.clock.now();
    this.#log = await this.#audited.checkpoints.find();
    await this.#extend();
    this.#isTooLarge = this.#unread !== undefined;
    return this.#unread;
  }

  get isReadable(): boolean {
    return this.#log !== undefined && this.#isReadable;
  }

  /** Records a listed chamber whose lines were judged up to these heads. */
  note(chamberId: number, heads: readonly StreamHead[]): void {
    this.#chambers.set(chamberId, heads);
  }

  /** Records chambers of a later list, which need not be judged because they were created during the audit. */
  noteListed(chamberIds: readonly number[]): void {
    for (const chamberId of chamberIds) this.#listed.add(chamberId);
  }

  /**
   * Reads new entries until they cover every judged line that must be covered by now, or the log stops growing. Returns the chambers of
   * the log that were not judged.
   */
  async catchUp(accounts: WatchedAccounts): Promise<readonly number[]> {
    if (!this.isReadable) return [];
    const judged = [...this.#judged(accounts)];
    const due = judged.filter(([, { at }]) => isDue(at, this.#audited.clock));
    const overdue = () => due.filter(([stream, { eventId }]) => eventId > this.#entries.countOf(stream));
    const { checkpoints } = this.#audited;
    // Beyond the cosigned size, other readers may see different lines.
    const uncosigned = (size = checkpoints.cosignedSize) =>
      due.filter(([stream, { eventId }]) => (this.#entries.indexOf(stream, eventId) ?? 0) >= size);
    const startedAt = performance.now();
    let grewAt = startedAt;
    for (;;) {
      const before = [this.#entries.checkpoint?.size, checkpoints.cosignedSize].join();
      await this.#extend();
      if ([this.#entries.checkpoint?.size, checkpoints.cosignedSize].join() !== before) grewAt = performance.now();
      if (
        !this.#isReadable ||
        overdue().length + uncosigned().length === 0 ||
        performance.now() - grewAt > (this.#audited.restMs ?? WAIT_MS_MAX) ||
        performance.now() - startedAt > (this.#audited.growthMs ?? GROWTH_MS_MAX)
      )
        break;
      await sleep(POLL_MS);
    }
    if (this.#isReadable)
      for (const [stream, { eventId }] of overdue()) this.#add(`${nameOfEvent({ stream, eventId })} ${OVERDUE}`);
    this.#uncosigned = this.#isReadable
      ? uncosigned().map(([stream, { eventId }]) => nameOfEvent({ stream, eventId }))
      : [];
    return [...this.#entries.streams].filter(isChamber).filter((stream) => !this.#chambers.has(stream));
  }

  *#judged(accounts: WatchedAccounts): Iterable<readonly [Stream, StreamHead]> {
    for (const [stream, heads] of this.#chambers) for (const head of heads) yield [stream, head];
    for (const did of accounts.dids) for (const head of accounts.watched(did).heads) yield [did, head];
  }

  /** Compares every stream with the log; returns the problems. */
  async conclude(accounts: WatchedAccounts): Promise<readonly string[]> {
    const loggedStreams = this.isReadable ? [...this.#entries.streams, ...this.#chambers.keys()] : [];
    const streams = new Set<Stream>([...loggedStreams, ...accounts.dids]);
    for (const stream of streams) {
      if (this.#problems.length >= PROBLEMS_MAX) break;
      if (typeof stream === 'number' && !this.#chambers.has(stream) && !this.#listed.has(stream))
        await this.#note(this.#unlisted(stream));
      else if (this.isReadable) await this.#check(stream, accounts);
      const contradiction = typeof stream === 'string' ? accounts.contradictionOf(stream) : undefined;
      if (contradiction !== undefined) this.#add(contradiction);
    }
    for (const { index, otherwise } of this.#claims) if (index >= this.#laterFrom) await this.#note(otherwise);
    return this.#problems;
  }

  /** The number of entries without a line that may come from earlier releases. */
  get unpublished(): number {
    return this.#claims.reduce((sum, { index, count }) => (index < this.#laterFrom ? sum + count : sum), 0);
  }

  /** Lines withheld from checks or witnesses, and the reason if entries published during the audit are not compared. */
  get doubts(): readonly string[] {
    const isGrown = this.#unread !== undefined && !this.#isTooLarge;
    const [first, ...further] = new Set(this.#uncosigned);
    const others = further.length === 0 ? '' : ` (and ${further.length} more)`;
    const uncosigned = first === undefined ? [] : [`${first}${others} ${UNCOSIGNED}`];
    return [
      ...this.#withheld,
      ...uncosigned,
      ...(isGrown ? [`the log has grown during the audit: ${this.#unread?.why}`] : []),
    ];
  }

  async #extend(): Promise<void> {
    const { published, checkpoints } = this.#audited;
    if (this.#log === undefined) return;
    try {
      const newest = await checkpoints.newest(this.#log);
      if (newest !== undefined) await this.#entries.extend(newest, published, this.#log);
    } catch (error) {
      this.#isReadable = false;
      if (error instanceof LogTooLarge) this.#unread = { limit: 'large log', why: `${error.message}: ${USE_MIRROR}` };
      else if (error instanceof BrokenIndex) await this.#noteIndex(error);
      else if (error instanceof UnusableInput) this.#add(`the published log can’t be read: ${error.message}`);
      else throw error;
    }
  }

  async #noteIndex({ message: problem, leaf }: BrokenIndex): Promise<void> {
    if (leaf === undefined) this.#add(problem);
    else await this.#note({ problem, leaf, line: null });
  }

  #unlisted(stream: number): Mismatch | undefined {
    const mismatch = new LoggedStream(this.#entries, stream).mismatch();
    return mismatch && { ...mismatch, problem: `the log has ${nameOfStream(stream)}, which the service does not list` };
  }

  async #check(stream: Stream, accounts: WatchedAccounts): Promise<void> {
    const heads = typeof stream === 'string' ? accounts.watched(stream).heads : (this.#chambers.get(stream) ?? []);
    const logged = new LoggedStream(this.#entries, stream);
    for (let reads = 1; ; reads++) {
      await logged.read(this.#audited.service, heads);
      if (!logged.isBehind(heads) || reads === READS_MAX) break;
      await sleep(READ_PAUSE_MS);
    }
    this.#laterFrom = Math.min(this.#laterFrom, logged.laterFrom ?? Number.POSITIVE_INFINITY);
    const { firstEventId, unpublished } = logged;
    if (typeof stream === 'string' && firstEventId !== undefined) accounts.noteServedFrom(stream, firstEventId);
    if (typeof stream === 'number' || accounts.isJudged(stream)) this.#noteWithheld(stream, logged);
    const index = logged.indexOf(unpublished);
    if (index === undefined) await this.#note(logged.mismatch());
    else {
      await this.#note(logged.mismatch(unpublished + 1));
      this.#claims.push({ count: unpublished, index, otherwise: logged.mismatch() });
    }
    for (const head of heads) {
      if (!logged.hasServed(head))
        this.#add(`the service serves lines of ${nameOfStream(stream)} that differ from those that were judged`);
    }
  }

  /** Lines written within the last minute may have become visible after the stream was judged. */
  #noteWithheld(stream: Stream, { unjudged }: LoggedStream): void {
    const isNew = (at: Millis) =>
      !isDue(at, { now: () => this.#startedAt }) && isDue(at, { now: () => this.#latestAt });
    const withheld = unjudged.find(({ at }) => !isNew(at));
    if (withheld === undefined || this.#withheld.length >= PROBLEMS_MAX) return;
    const { eventId } = withheld;
    this.#withheld.push(
      `${nameOfEvent({ stream, eventId })} was not served when the lines were judged, although its date does not explain that, so it was not checked (if your clock is wrong, state the time with --now)`,
    );
  }

  /** Two minutes ahead of now, so that isDue, which subtracts one minute, accepts lines up to one minute in the future. */
  get #latestAt(): Millis {
    return this.#audited.clock.now() + 2 * COVERED_SECONDS_MAX * 1_000;
  }

  async #note(mismatch: Mismatch | undefined): Promise<void> {
    if (mismatch === undefined || this.#problems.length >= PROBLEMS_MAX) return;
    const { problem, leaf, line } = mismatch;
    const { published, checkpoints } = this.#audited;
    const [log, checkpoint] = [this.#log as LogKey, this.#entries.checkpoint as SignedCheckpoint];
    const readTile = (tile: Parameters<ServiceLog['tile']>[1]) => published.tile(log, tile);
    const content = await entryEvidence(
      { problem, leaf, entry: this.#entries.entryAt(leaf.index), line },
      { checkpoint, keys: [log.verifierKey], readTile },
    );
    const file = await checkpoints.options.proofs.keepEvidence(`entry-${leaf.index}`, content);
    this.#add(`${problem}: ${file} contains the service’s statements about it`);
  }

  #add(problem: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(problem);
  }
}

function isChamber(stream: Stream): stream is number {
  return typeof stream === 'number';
}
