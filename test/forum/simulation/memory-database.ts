// An in-memory database shared by any number of stores. Every method is atomic: an append happens at one moment.
import { HASH_BYTES, type NodeRef } from '../../../src/crypto/merkle.ts';
import {
  ALL_CHAMBERS,
  type AppendBatch,
  type AppendResult,
  type LogEntry,
  type OrderedPage,
  type Page,
  type Registration,
  type Snapshot,
} from '../../../src/log/log.ts';
import { PAGE_BYTES } from '../../../src/log/pages.ts';
import type { StreamId } from '../../../src/log/stream-id.ts';
import type { Millis } from '../../../src/vocabulary/values.ts';

/** A line in commit order. */
export interface Commit {
  readonly stream: StreamId;
  readonly eventId: number;
  readonly line: string;
  /** The value of `time` when the line was written. */
  readonly writtenAt: number;
}

interface Place {
  readonly stream: StreamId;
  readonly eventId: number;
}

const NO_LINES: Page = { ndjson: Buffer.alloc(0), count: 0 };

export class MemoryDatabase {
  readonly logId = 'd'.repeat(32);
  readonly meta = new Map<string, string>();
  readonly emails = new Map<string, string>();
  readonly snapshots = new Map<StreamId, Snapshot>();
  readonly commits: Commit[] = [];
  readonly entries: LogEntry[] = [];
  /** Lines and recorded registrations in commit order since this copy was made. They determine the contents. */
  readonly written: string[] = [];
  /** The simulation's time, recorded with each commit. */
  time: () => number = () => 0;
  clock: Millis = 0;
  lastChamberId = 0;
  readonly #streams = new Map<StreamId, LogEntry[]>();
  readonly #signatures = new Map<string, Place>();

  /** Returns a copy; afterwards both change independently. */
  copy(): MemoryDatabase {
    const copy = new MemoryDatabase();
    for (const [name, value] of this.meta) copy.meta.set(name, value);
    for (const [did, email] of this.emails) copy.emails.set(did, email);
    for (const [stream, snapshot] of this.snapshots) copy.snapshots.set(stream, snapshot);
    for (const [stream, lines] of this.#streams) copy.#streams.set(stream, [...lines]);
    for (const [signature, place] of this.#signatures) copy.#signatures.set(signature, place);
    copy.commits.push(...this.commits);
    copy.entries.push(...this.entries);
    copy.clock = this.clock;
    copy.lastChamberId = this.lastChamberId;
    return copy;
  }

  append({ entries, registrations = [], heads = new Map(), signatures = [] }: AppendBatch): AppendResult {
    const own = [...registrations, ...entries].flatMap(({ signature }) => signature ?? []);
    if (new Set(own).size < own.length) throw new Error('the batch has a duplicate signature');
    const keys = [...signatures, ...own];
    const found = new Map<string, string>();
    for (const key of keys) {
      const place = this.#signatures.get(key);
      if (place !== undefined) found.set(key, this.#lineAt(place));
    }
    const conflicts = this.#findConflicts(entries, registrations, found);
    for (const [stream, head] of heads) if (this.head(stream) !== head) conflicts.add(stream);
    const written = entries.filter(({ stream }) => !conflicts.has(stream));
    for (const entry of written) this.#write(entry);
    for (const registration of registrations) {
      const { did, signature } = registration;
      if (!conflicts.has(did) && !found.has(signature ?? '')) this.#remember(registration);
    }
    return { conflicts: new Map([...conflicts].map((stream) => [stream, this.head(stream)])), found };
  }

  /** A stream is written completely or not at all; the same holds for the chambers that a batch creates. */
  #findConflicts(
    entries: readonly LogEntry[],
    registrations: readonly Registration[],
    found: ReadonlyMap<string, unknown>,
  ): Set<StreamId> {
    const conflicts = new Set<StreamId>();
    const next = new Map<StreamId, number>();
    const created: StreamId[] = [];
    for (const { stream, eventId, account, signature } of entries) {
      const isCreation = typeof stream === 'number' && eventId === 1;
      const expected = next.get(stream);
      if (expected !== undefined && eventId !== expected) {
        throw new Error(`the batch has event ${eventId} of ${stream} where event ${expected} is next`);
      }
      const isNext = eventId === (expected ?? this.head(stream) + 1);
      const isNextChamber = !isCreation || stream === this.lastChamberId + 1 + created.length;
      next.set(stream, eventId + 1);
      if (isCreation) created.push(stream);
      // A real server also only looks for a later event; the forum must ensure that the named event exists.
      const isAtHead = account === undefined || this.head(account.did) <= account.lastEventId;
      if (account !== undefined && !isAtHead) conflicts.add(account.did);
      if (isNext && isNextChamber && isAtHead && !found.has(signature ?? '')) continue;
      conflicts.add(stream);
    }
    if (created.some((stream) => conflicts.has(stream))) {
      for (const stream of created) conflicts.add(stream);
      conflicts.add(ALL_CHAMBERS);
    }
    for (const { did, signature, unchangedAt } of registrations) {
      const isKnown = found.has(signature ?? '') && next.has(did);
      if (isKnown || (unchangedAt !== undefined && this.head(did) !== unchangedAt)) conflicts.add(did);
    }
    return conflicts;
  }

  #write(entry: LogEntry): void {
    const { stream, eventId, at, line, signature, snapshot } = entry;
    const lines = this.#streams.get(stream) ?? [];
    this.#streams.set(stream, lines);
    lines.push(entry);
    this.entries.push(entry);
    if (typeof stream === 'number') this.lastChamberId = Math.max(this.lastChamberId, stream);
    if (signature !== null) this.#signatures.set(signature, entry);
    if (snapshot !== undefined) this.writeSnapshot(stream, snapshot);
    this.clock = Math.max(this.clock, at);
    const text = Buffer.from(line).toString();
    this.written.push(text);
    this.commits.push({ stream, eventId, line: text, writtenAt: this.time() });
  }

  #remember({ did, eventId, signature, operatorEmail }: Registration): void {
    this.written.push(`${signature} leads to event ${eventId} of ${did}`);
    if (signature !== null) this.#signatures.set(signature, { stream: did, eventId });
    if (operatorEmail !== undefined) this.emails.set(did, operatorEmail);
  }

  #lineAt({ stream, eventId }: Place): string {
    return Buffer.from(this.entry(stream, eventId)?.line ?? []).toString();
  }

  entry(stream: StreamId, eventId: number): LogEntry | undefined {
    return this.#streams.get(stream)?.[eventId - 1];
  }

  head(stream: StreamId): number {
    return stream === ALL_CHAMBERS ? this.lastChamberId : (this.#streams.get(stream)?.length ?? 0);
  }

  readPage(stream: StreamId, after: number, limit: number): Page {
    return pageOf(this.#streams.get(stream)?.slice(after, after + limit) ?? []);
  }

  readAll(after: number, limit: number): OrderedPage {
    const rest = this.entries.slice(after).filter(({ stream }) => typeof stream === 'number');
    const page = pageOf(rest.slice(0, limit));
    const last = rest[page.count - 1];
    const isCut = page.count < rest.length && last !== undefined;
    return { ...page, last: isCut ? this.entries.indexOf(last) + 1 : this.entries.length };
  }

  lastPlace(): number {
    return this.entries.length;
  }

  placeOf(stream: StreamId, eventId: number): number | undefined {
    const index = this.entries.findIndex((entry) => entry.stream === stream && entry.eventId === eventId);
    return index < 0 ? undefined : index + 1;
  }

  readNodes(chamberId: number, refs: readonly NodeRef[]): readonly Uint8Array[] {
    return refs.map(({ eventId, level }) => {
      const { nodes } = this.entry(chamberId, eventId) ?? {};
      return (nodes ?? new Uint8Array()).subarray(level * HASH_BYTES, (level + 1) * HASH_BYTES);
    });
  }

  /** Reads the latest row of each chamber. */
  countOpenChambers(creatorDid: string, max: number): number {
    const rows = this.entries.flatMap(({ listings }) => listings).filter((row) => row.kind === 'chamber');
    const latest = new Map(rows.map((row) => [row.chamberId, row]));
    const open = [...latest.values()].filter((row) => row.creatorDid === creatorDid && !row.isCommitted);
    return Math.min(max, open.length);
  }

  writeSnapshot(stream: StreamId, snapshot: Snapshot): void {
    if ((this.snapshots.get(stream)?.eventId ?? 0) <= snapshot.eventId) this.snapshots.set(stream, snapshot);
  }
}

function pageOf(entries: readonly LogEntry[]): Page {
  const lines: Buffer[] = [];
  let bytes = 0;
  for (const { line } of entries) {
    if (bytes >= PAGE_BYTES) break;
    lines.push(Buffer.from(line), LINE_BREAK);
    bytes += line.length + 1;
  }
  return lines.length === 0 ? NO_LINES : { ndjson: Buffer.concat(lines), count: lines.length / 2 };
}

const LINE_BREAK = Buffer.from('\n');
