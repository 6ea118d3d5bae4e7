// Finds the line of each entry of the tree. The unsigned index names the event of each entry. Each event of a stream must have one entry, in
// order, and the line that the service returns for the event must hash to the entry and name the same event. So no entry can hide a second
// history.
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidStub } from '../crypto/stub.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import {
  type IndexedLeaf,
  isAccountStream,
  type LinePosition,
  nameOfEvent,
  positionOfLine,
  positionProblem,
  type Stream,
} from '../tlog/leaf-index.ts';
import { NO_PREVIOUS, toHex } from '../vocabulary/values.ts';
import type { MirrorFolder } from './folder.ts';
import { NotServed, type PublishedLog, TooLong } from './published-log.ts';
import type { StreamEnd, StreamEnds } from './record.ts';
import type { StubVerifier } from './stubs.ts';

/** The maximum number of bytes of lines in memory; a single line may be longer. */
const HELD_BYTES_MAX = READ_LIMITS.lineBytesMax / 4;
/** A node that lags behind the checkpoint's publisher has the line soon. */
const READS_MAX = 3;
const READ_PAUSE_MS = 1_000;
const NOT_FOUND = 404;

const utf8 = new TextDecoder();

/** Entries may belong to lines that an earlier release did not publish. Only the mirror's operator can know whether such a release ran. */
export class Undecided extends Error {}

/** No line explains an entry of the signed log. */
export class Unexplained extends Error {
  readonly leaf: IndexedLeaf;
  readonly entry: Uint8Array;
  /** The line that the service returned for the entry. */
  readonly line: Uint8Array | undefined;

  constructor(problem: string, { leaf, entry, line }: Pick<Unexplained, 'leaf' | 'entry' | 'line'>) {
    super(problem);
    this.leaf = leaf;
    this.entry = entry;
    this.line = line;
  }
}

interface FinderOptions {
  readonly signal?: AbortSignal | undefined;
  /** Accepts accounts whose first lines are not published. */
  readonly allowUnpublished?: boolean | undefined;
  readonly stubs: StubVerifier;
}

interface FoundLine {
  readonly line: Uint8Array;
  readonly position: LinePosition | undefined;
}

/** Marks an unpublished line: one with an e-mail address at the beginning of an account, written by a release before schema 4. */
const PRIVATE = 'private';

type Found = FoundLine | typeof PRIVATE | undefined;

export class LineFinder {
  /** The number of entries whose lines the service does not publish. */
  unpublished = 0;
  /** Whether the log has a line of a release that publishes every line. */
  isLaterRelease: boolean;
  readonly #log: PublishedLog;
  readonly #folder: Pick<MirrorFolder, 'endOf' | 'appendLines'>;
  readonly #options: FinderOptions;
  readonly #stubs: StubVerifier;
  #ends = new Map<Stream, StreamEnd>();

  constructor(
    log: PublishedLog,
    folder: Pick<MirrorFolder, 'endOf' | 'appendLines' | 'state'>,
    options: FinderOptions,
  ) {
    this.#log = log;
    this.#folder = folder;
    this.#options = options;
    this.#stubs = options.stubs;
    this.isLaterRelease = folder.state?.isLaterRelease ?? false;
  }

  /** Appends the lines of the entries after the first `after`. Splits the range in half if the lines don't fit in memory. */
  async append(prefix: string, after: number, entries: readonly Uint8Array[]): Promise<void> {
    if (entries.length === 0) return;
    try {
      await this.#appendBatch(prefix, after, entries);
    } catch (error) {
      if (!(error instanceof TooLong) || entries.length === 1) throw error;
      const half = Math.ceil(entries.length / 2);
      await this.append(prefix, after, entries.slice(0, half));
      await this.append(prefix, after + half, entries.slice(half));
    }
  }

  /** Returns the new ends of streams, and forgets them. */
  takeEnds(): StreamEnds {
    const ends = this.#ends;
    this.#ends = new Map();
    return ends;
  }

  #endOf(stream: Stream): StreamEnd | undefined {
    return this.#ends.get(stream) ?? this.#folder.endOf(stream);
  }

  /** Appends the lines before an unexplained entry even on failure, for the evidence. */
  async #appendBatch(prefix: string, after: number, entries: readonly Uint8Array[]): Promise<void> {
    const leaves = await this.#log.leaves(prefix, after, entries.length);
    // A misplaced leaf is not requested, because its index row must be wrong.
    const misplaced = this.#firstMisplaced(leaves);
    const inPlace = leaves.slice(0, misplaced?.at);
    const found = await this.#readLines(inPlace);
    await this.#stubs.prepare([...found.values()].flatMap((each) => (typeof each === 'object' ? [each.line] : [])));
    const lines: (Uint8Array | null)[] = [];
    try {
      for (const [i, leaf] of inPlace.entries()) {
        lines.push(this.#explain(leaf, entries[i] as Uint8Array, found.get(leaf.index)));
      }
    } finally {
      await this.#folder.appendLines(lines);
    }
    if (misplaced === undefined) return;
    const leaf = leaves[misplaced.at] as IndexedLeaf;
    const entry = entries[misplaced.at] as Uint8Array;
    throw new Unexplained(misplaced.problem, { leaf, entry, line: await this.#lineOf(leaf) });
  }

  #firstMisplaced(leaves: readonly IndexedLeaf[]): { readonly at: number; readonly problem: string } | undefined {
    const last = new Map<Stream, number>();
    for (const [at, leaf] of leaves.entries()) {
      const { stream, eventId } = leaf;
      const problem = positionProblem(leaf, last.get(stream) ?? this.#endOf(stream)?.eventId ?? 0);
      if (problem !== undefined) return { at, problem };
      last.set(stream, eventId);
    }
    return undefined;
  }

  async #lineOf({ stream, eventId }: IndexedLeaf): Promise<Uint8Array | undefined> {
    const range = { after: eventId - 1, count: 1, bytesMax: READ_LIMITS.lineBytesMax };
    const lines = await this.#log.events(stream, range).catch(() => []);
    return lines[0];
  }

  /** Makes one request per stream, whose events are consecutive within these leaves. */
  async #readLines(leaves: readonly IndexedLeaf[]): Promise<ReadonlyMap<number, Found>> {
    const lines = new Map<number, Found>();
    let bytesMax = leaves.length === 1 ? READ_LIMITS.lineBytesMax : HELD_BYTES_MAX;
    for (const run of Map.groupBy(leaves, ({ stream }) => stream).values()) {
      for (const [i, found] of (await this.#readRun(run, bytesMax)).entries()) {
        if (typeof found === 'object') bytesMax -= found.line.length;
        lines.set((run[i] as IndexedLeaf).index, found);
      }
    }
    return lines;
  }

  async #readRun(run: readonly IndexedLeaf[], bytesMax: number): Promise<readonly Found[]> {
    const { stream, eventId: first } = run[0] as IndexedLeaf;
    const mayBePrivate = isAccountStream(stream) && this.#endOf(stream)?.isPublished !== true;
    for (let reads = 1; ; reads++) {
      const lines = await this.#log
        .events(stream, { after: first - 1, count: run.length, bytesMax })
        .catch((error: unknown) => {
          if (error instanceof NotServed && error.status === NOT_FOUND) return undefined;
          throw error;
        });
      const found = placed(lines ?? [], run);
      if (mayBePrivate && lines !== undefined) return withPrivate(found);
      if (found.at(-1) !== undefined || reads === READS_MAX) return found;
      await sleep(READ_PAUSE_MS, undefined, { signal: this.#options.signal });
    }
  }

  #stubProblem(line: Uint8Array): string | undefined {
    try {
      this.#stubs.leafOf(line);
      return undefined;
    } catch (error) {
      if (error instanceof InvalidStub) return error.message;
      throw error;
    }
  }

  /** Checks the found line against the entry. Returns the line, or null if the service does not publish it. */
  #explain(leaf: IndexedLeaf, entry: Uint8Array, found: Found): Uint8Array | null {
    const { stream, eventId, index } = leaf;
    const end = this.#endOf(stream);
    const served = found === PRIVATE ? undefined : found;
    const fail = (problem: string) => new Unexplained(problem, { leaf, entry, line: served?.line });
    if (found === PRIVATE && !this.isLaterRelease) {
      if (!this.#options.allowUnpublished)
        throw new Undecided(
          `the service has no line for the entry at index ${index}, which the index calls ${nameOfEvent(leaf)}: releases before schema 4 did not publish all lines of accounts; use --allow-unpublished if the service ran such a release`,
        );
      this.#ends.set(stream, { eventId, entry, isPublished: false });
      this.unpublished++;
      return null;
    }
    if (served === undefined)
      throw fail(`the service has no line for the entry at index ${index}, ${nameOfEvent(leaf)}`);
    const { line, position } = served;
    const problem = this.#stubProblem(line);
    if (problem !== undefined) throw fail(`${nameOfEvent(leaf)} ${problem}`);
    if (Buffer.compare(this.#stubs.leafOf(line), entry) !== 0)
      throw fail(`the service serves a line as ${nameOfEvent(leaf)} that is not the log's entry at index ${index}`);
    if (position?.stream !== stream || position.eventId !== eventId)
      throw fail(
        `the service serves the line at index ${index} as ${nameOfEvent(leaf)}, but the line is of another event`,
      );
    if (position.prev !== (end === undefined ? NO_PREVIOUS : toHex(end.entry)))
      throw fail(`${nameOfEvent(leaf)} does not contain the hash of the line before it`);
    this.#ends.set(stream, { eventId, entry, isPublished: true });
    this.isLaterRelease ||= position.isFromLaterRelease;
    return line;
  }
}

/** Marks the missing lines before the first one as private. */
function withPrivate(found: readonly Found[]): readonly Found[] {
  const first = found.findIndex((each) => each !== undefined);
  return found.map((each, i) => (first < 0 || i < first ? PRIVATE : each));
}

/** Puts each line at the position of the event that it names. */
function placed(lines: readonly Uint8Array[], run: readonly IndexedLeaf[]): readonly (FoundLine | undefined)[] {
  const { stream, eventId: first } = run[0] as IndexedLeaf;
  const found = new Array<FoundLine | undefined>(run.length).fill(undefined);
  for (const [i, line] of lines.entries()) {
    const position = positionOfLine(utf8.decode(line), READ_LIMITS.jsonValuesMax);
    // A line of another stream, or of none, keeps the requested position, where it will not match the entry.
    const at = position?.stream === stream ? position.eventId - first : i;
    if (at >= 0 && at < run.length) found[at] ??= { line, position };
  }
  return found;
}
