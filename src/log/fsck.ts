// Checks a whole database against its raw lines, read-only and beside a running service: the file, every line with what is
// stored beside it, the derived tables and the log's identity.
import { isDeepStrictEqual } from 'node:util';
import Database from 'better-sqlite3';
import { listingsOf } from '../../projections/listings.ts';
import { INDEXED_THROUGH, prefixOf } from './event-index.ts';
import { Listings } from './listings.ts';
import type { StreamId } from './log.ts';
import { DERIVED_TABLES, type INDEX_TABLES, migrate } from './schema.ts';
import { accountEvents, chamberEvents, openReader, readMeta, type StoredEvent } from './stored-events.ts';
import { EMPTY_STREAM, type VerifiedStream, verifyEvent } from './verify-event.ts';

export interface Fault {
  /** Of the event in the log; null where the fault is in no event. */
  readonly position: number | null;
  readonly stream: StreamId | null;
  readonly eventId: number | null;
  readonly problem: string;
}

export interface FsckSummary {
  readonly logId: string;
  readonly events: number;
  readonly chambers: number;
  readonly accounts: number;
  readonly faults: number;
}

/**
 * Reports the faults in the order of the log, so that the first one with a position is the first bad event; of each
 * stream only its first, because what follows builds on it. Throws when the file cannot be read as a database of ours.
 */
export function fsckDatabase(path: string, report: (fault: Fault) => void): FsckSummary {
  const db = openReader(path);
  const scratch = new Database('');
  try {
    migrate(scratch, '');
    return new Fsck(db, scratch).run(report);
  } finally {
    scratch.close();
    db.close();
  }
}

const LOG_ID = /^[0-9a-f]{32}$/;

class Fsck {
  readonly #db: Database.Database;
  /** The derived tables made anew, on disk where they are large. */
  readonly #scratch: Database.Database;
  readonly #derived: Listings;
  readonly #faults: Fault[] = [];
  readonly #badStreams = new Set<StreamId>();

  constructor(db: Database.Database, scratch: Database.Database) {
    this.#db = db;
    this.#scratch = scratch;
    this.#derived = new Listings(scratch);
  }

  run(report: (fault: Fault) => void): FsckSummary {
    // One snapshot for all passes, while the service writes on.
    this.#db.exec('BEGIN');
    const events = this.#db.prepare<[], number>('SELECT count(*) FROM events').pluck().get() ?? 0;
    const logId = readMeta(this.#db, 'log_id') ?? '';
    if (!LOG_ID.test(logId)) this.#note(null, 'the log has no logId of 32 hex digits');
    this.#read('the file', () => this.#checkFile());
    this.#read('the order of the log', () => this.#checkOrder());
    const chambers = this.#read('the chambers', () => this.#checkStreams(chamberEvents(this.#db))) ?? 0;
    const accounts = this.#read('the accounts', () => this.#checkStreams(accountEvents(this.#db))) ?? 0;
    this.#read('the signatures', () => this.#checkSignatures());
    this.#read('the derived tables', () => this.#checkTables());
    this.#read('the index', () => this.#checkIndex());
    for (const fault of this.#faults.sort(byPosition)) report(fault);
    return { logId, events, chambers, accounts, faults: this.#faults.length };
  }

  /** A damaged file may fail anywhere: the other passes still say what they can. */
  #read<Result>(what: string, pass: () => Result): Result | undefined {
    try {
      return pass();
    } catch (error) {
      this.#note(null, `${what} cannot be read: ${error instanceof Error ? error.message : error}`);
      return undefined;
    }
  }

  #checkFile(): void {
    const rows = this.#db.pragma('integrity_check') as readonly { readonly integrity_check: string }[];
    for (const { integrity_check } of rows) {
      if (integrity_check !== 'ok') this.#note(null, `the file is damaged: ${integrity_check.trim()}`);
    }
  }

  #checkOrder(): void {
    const query = `SELECT position, chamber_id, account, event_id,
      CASE WHEN json_valid(line) THEN json_extract(line, '$.ts') END AS ts FROM events ORDER BY position`;
    let position = 0;
    let latest = '';
    for (const row of this.#db.prepare<[], StoredEvent & { readonly ts: string | null }>(query).iterate()) {
      const isNext = row.position === ++position;
      const isLater = row.ts === null || row.ts >= latest;
      if (!isNext) this.#note(row, `its position is ${row.position}, not ${position}`);
      else if (!isLater) this.#note(row, 'ts lies before that of an earlier event');
      if (!isNext || !isLater) return;
      latest = row.ts ?? latest;
    }
  }

  /** The number of streams. */
  #checkStreams(events: Iterable<StoredEvent>): number {
    let streams = 0;
    let current: StreamId | undefined;
    let verified: VerifiedStream = EMPTY_STREAM;
    for (const stored of events) {
      const stream = streamOf(stored);
      if (stream !== current) {
        streams++;
        verified = EMPTY_STREAM;
        current = stream;
      }
      if (!this.#badStreams.has(stream)) verified = this.#checkEvent(verified, stored);
    }
    return streams;
  }

  #checkEvent(before: VerifiedStream, stored: StoredEvent): VerifiedStream {
    try {
      const verified = verifyEvent(before, stored);
      const { chamber } = verified;
      if (chamber !== null) {
        for (const listing of listingsOf(before.chamber, chamber)) this.#derived.write(listing);
      }
      return verified;
    } catch (error) {
      this.#badStreams.add(streamOf(stored));
      this.#note(stored, error instanceof Error ? error.message : String(error));
      return before;
    }
  }

  #checkTables(): void {
    for (const table of DERIVED_TABLES) {
      const chambers = new Set([
        ...unmatched(this.#db, this.#scratch, table),
        ...unmatched(this.#scratch, this.#db, table),
      ]);
      for (const stream of chambers) {
        if (this.#badStreams.has(stream)) continue;
        this.#faults.push(derivedFault(table, stream));
      }
    }
  }

  #checkSignatures(): void {
    const repeated = this.#db.prepare<[], StoredEvent>(
      `SELECT * FROM events WHERE position IN
        (SELECT max(position) FROM events WHERE signature IS NOT NULL GROUP BY signature HAVING count(*) > 1)`,
    );
    for (const stored of repeated.iterate()) this.#note(stored, 'its signature is in the log already');
  }

  /** The index may end before the log does: the service holds the newest events in memory. */
  #checkIndex(): void {
    // Schema 1 had indexes of SQLite's own.
    if (this.#db.pragma('user_version', { simple: true }) === 1) return;
    const through = Number(readMeta(this.#db, INDEXED_THROUGH));
    const last = this.#db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() ?? 0;
    if (!(through >= 0 && through <= last))
      this.#note(null, `the index ends at position ${through}, the log at ${last}`);
    for (const [table, query] of Object.entries(INDEX_DIFFERENCES)) {
      for (const stream of this.#db.prepare<[number], StreamId | null>(query).pluck().iterate(through)) {
        if (stream === null || !this.#badStreams.has(stream)) this.#faults.push(derivedFault(table, stream));
      }
    }
  }

  #note(stored: StoredEvent | null, problem: string): void {
    const { position = null, event_id: eventId = null } = stored ?? {};
    this.#faults.push({ position, stream: stored && streamOf(stored), eventId, problem });
  }
}

/** The streams of events whose entry is missing or wrong, and of entries without their event; up to a position. */
const INDEX_DIFFERENCES: Readonly<Record<(typeof INDEX_TABLES)[number], string>> = {
  stream_events: `
    SELECT coalesce(chamber_id, account) AS stream FROM events LEFT JOIN stream_events AS entry
      ON entry.stream = coalesce(chamber_id, account) AND entry.event_id = events.event_id
      WHERE events.position <= ? AND entry.position IS NOT events.position
    UNION SELECT stream FROM stream_events AS entry LEFT JOIN events USING (position)
      WHERE events.event_id IS NOT entry.event_id OR coalesce(chamber_id, account) IS NOT stream`,
  signatures: `
    SELECT coalesce(chamber_id, account) AS stream FROM events LEFT JOIN signatures AS entry
      ON entry.prefix = ${prefixOf('events.signature')} AND entry.position = events.position
      WHERE events.position <= ? AND events.signature IS NOT NULL AND entry.position IS NULL
    UNION SELECT coalesce(chamber_id, account) FROM signatures AS entry LEFT JOIN events USING (position)
      WHERE entry.prefix IS NOT ${prefixOf('events.signature')}`,
};

function derivedFault(table: string, stream: StreamId | null): Fault {
  const problem = `table ${table} is not what the log gives: chambers rebuild makes it anew`;
  return { position: null, stream, eventId: null, problem };
}

const KEYS = { chambers: 'chamber_id = @chamber_id', ideas: 'chamber_id = @chamber_id AND slot = @slot' } as const;

interface DerivedRow {
  readonly chamber_id: number;
}

/** The chambers of the rows in the one database that are not just so in the other. */
function* unmatched(one: Database.Database, other: Database.Database, table: keyof typeof KEYS): Generator<number> {
  const find = other.prepare<[DerivedRow], DerivedRow>(`SELECT * FROM ${table} WHERE ${KEYS[table]}`);
  for (const row of one.prepare<[], DerivedRow>(`SELECT * FROM ${table}`).iterate()) {
    if (!isDeepStrictEqual(find.get(row), row)) yield row.chamber_id;
  }
}

function streamOf({ chamber_id, account }: Pick<StoredEvent, 'chamber_id' | 'account'>): StreamId {
  return chamber_id ?? account ?? '';
}

function byPosition(a: Fault, b: Fault): number {
  return (a.position ?? Number.POSITIVE_INFINITY) - (b.position ?? Number.POSITIVE_INFINITY);
}
