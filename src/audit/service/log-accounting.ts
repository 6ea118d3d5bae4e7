// Whether every entry of the log is accounted for by exactly one line, of a chamber that is listed or of an account, and every line by an entry. A
// second history of a chamber has no entry left to be in. The largest checkpoint that the service has signed counts, read again once all
// chambers were judged; then each stream is read again: the lines have to be those of the entries, and those that were judged. A line that only
// this second read shows must be new: an old one was kept from the checks.
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
import { LogEntries, NoHonestIndex, TooLarge } from './log-entries.ts';
import { LoggedStream, type Mismatch } from './logged-stream.ts';
import { type LogKey, POLL_MS, type ServiceLog, WAIT_MS_MAX } from './service-log.ts';
import type { AuditedService } from './service-reader.ts';

const PROBLEMS_MAX = 100;
/** A node that is behind the one that published the checkpoint has the lines in a moment. */
const READS_MAX = 3;
const GROWTH_MS_MAX = 60_000;
const READ_PAUSE_MS = 1_000;
const USE_MIRROR = 'chambers mirror shows whether its lines account for each entry';

interface Audited {
  readonly service: AuditedService;
  readonly published: ServiceLog;
  readonly checkpoints: Checkpoints;
  readonly clock: AuditClock;
  /** How long a log may rest that does not cover what it has to. */
  readonly restMs?: number;
  /** How long it may grow without covering it: growth by a leaf at a time must not make an audit last. */
  readonly growthMs?: number;
}

/** Entries that are said to be of lines that an earlier release did not publish. */
interface Claim {
  readonly count: number;
  /** The last of them. */
  readonly index: number;
  /** What is wrong if it is not so. */
  readonly otherwise: Mismatch | undefined;
}

export class LogAccounting {
  readonly #audited: Audited;
  readonly #entries = new LogEntries();
  readonly #problems: string[] = [];
  readonly #claims: Claim[] = [];
  /** The lines that chambers were judged by. */
  readonly #chambers = new Map<Stream, readonly StreamHead[]>();
  /** Chambers that a later list has. */
  readonly #listed = new Set<number>();
  /** Lines that were kept from the checks. */
  readonly #withheld: string[] = [];
  /** Due lines that no witnesses have seen in the log. */
  #uncosigned: readonly string[] = [];
  #begunAt = 0;
  /** The index of the first line of a release that publishes every line. */
  #laterFrom = Number.POSITIVE_INFINITY;
  #log: LogKey | undefined;
  #unread: Reason | undefined;
  #isReadable = true;
  #isTooLarge = false;

  constructor(audited: Audited) {
    this.#audited = audited;
  }

  /** Reads what is published before the chambers are; returns why it is not compared. */
  async begin(): Promise<Reason | undefined> {
    this.#begunAt = this.#audited.clock.now();
    this.#log = await this.#audited.checkpoints.find();
    await this.#readOn();
    this.#isTooLarge = this.#unread !== undefined;
    return this.#unread;
  }

  /** Whether entries and index could be read so far. */
  get isReadable(): boolean {
    return this.#log !== undefined && this.#isReadable;
  }

  /** The service lists the chamber; its lines were judged up to the last of these. */
  note(chamberId: number, heads: readonly StreamHead[]): void {
    this.#chambers.set(chamberId, heads);
  }

  /** The service lists them now; those that were created during the audit need not be judged. */
  noteListed(chamberIds: readonly number[]): void {
    for (const chamberId of chamberIds) this.#listed.add(chamberId);
  }

  /**
   * Reads what was published meanwhile, until it covers each line that was judged and is more than a minute old, or the log rests. Returns the
   * chambers of the log that were not judged.
   */
  async settle(accounts: WatchedAccounts): Promise<readonly number[]> {
    if (!this.isReadable) return [];
    const judged = [...this.#judged(accounts)];
    const due = judged.filter(([, { at }]) => isDue(at, this.#audited.clock));
    const overdue = () => due.filter(([stream, { eventId }]) => eventId > this.#entries.countOf(stream));
    const { checkpoints } = this.#audited;
    // Lines beyond what witnesses have cosigned may be others for other readers.
    const uncosigned = (size = checkpoints.cosignedSize) =>
      due.filter(([stream, { eventId }]) => (this.#entries.indexOf(stream, eventId) ?? 0) >= size);
    const begunAt = performance.now();
    let grewAt = begunAt;
    for (;;) {
      const before = [this.#entries.checkpoint?.size, checkpoints.cosignedSize].join();
      await this.#readOn();
      if ([this.#entries.checkpoint?.size, checkpoints.cosignedSize].join() !== before) grewAt = performance.now();
      if (
        !this.#isReadable ||
        overdue().length + uncosigned().length === 0 ||
        performance.now() - grewAt > (this.#audited.restMs ?? WAIT_MS_MAX) ||
        performance.now() - begunAt > (this.#audited.growthMs ?? GROWTH_MS_MAX)
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

  /** What is wrong with the log, and with what chambers and accounts were judged by. */
  async conclude(accounts: WatchedAccounts): Promise<readonly string[]> {
    const ofLog = this.isReadable ? [...this.#entries.streams, ...this.#chambers.keys()] : [];
    const streams = new Set<Stream>([...ofLog, ...accounts.dids]);
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

  /** The number of entries without a line that are said to be of earlier releases, and may be. */
  get unpublished(): number {
    return this.#claims.reduce((sum, { index, count }) => (index < this.#laterFrom ? sum + count : sum), 0);
  }

  /** What was kept from the checks, or from witnesses, and why the entries that were published during the audit are not compared. */
  get doubts(): readonly string[] {
    const isGrown = this.#unread !== undefined && !this.#isTooLarge;
    const [first, ...further] = new Set(this.#uncosigned);
    const others = further.length === 0 ? '' : ` (and ${further.length} more)`;
    const uncosigned = first === undefined ? [] : [`${first}${others} ${UNCOSIGNED}`];
    return [
      ...this.#withheld,
      ...uncosigned,
      ...(isGrown ? [`the log has grown meanwhile: ${this.#unread?.why}`] : []),
    ];
  }

  async #readOn(): Promise<void> {
    const { published, checkpoints } = this.#audited;
    if (this.#log === undefined) return;
    try {
      const newest = await checkpoints.newest(this.#log);
      if (newest !== undefined) await this.#entries.extend(newest, published, this.#log);
    } catch (error) {
      this.#isReadable = false;
      if (error instanceof TooLarge) this.#unread = { limit: 'large log', why: `${error.message}: ${USE_MIRROR}` };
      else if (error instanceof NoHonestIndex) await this.#noteIndex(error);
      else if (error instanceof UnusableInput) this.#add(`the published log can’t be read: ${error.message}`);
      else throw error;
    }
  }

  async #noteIndex({ message: problem, leaf }: NoHonestIndex): Promise<void> {
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
        this.#add(`the service serves other lines of ${nameOfStream(stream)} than those that were judged`);
    }
  }

  /** A line of the last minute may have been written, or become visible, after the stream was judged. */
  #noteWithheld(stream: Stream, { unjudged }: LoggedStream): void {
    const isNew = (at: Millis) => !isDue(at, { now: () => this.#begunAt }) && isDue(at, { now: () => this.#latestAt });
    const withheld = unjudged.find(({ at }) => !isNew(at));
    if (withheld === undefined || this.#withheld.length >= PROBLEMS_MAX) return;
    const { eventId } = withheld;
    this.#withheld.push(
      `${nameOfEvent({ stream, eventId })} was not served when the lines were judged, although it is not dated as one that was written then, so nothing of it was checked (if your clock is wrong, say with --now what time it is)`,
    );
  }

  /** Two minutes from now: as far ahead as a line is due behind. */
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
    this.#add(`${problem}: ${file} keeps what the service signed and said of it`);
  }

  #add(problem: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(problem);
  }
}

function isChamber(stream: Stream): stream is number {
  return typeof stream === 'number';
}
