// Checks a whole database against its raw lines, read-only and beside a running service: the file, every line and the columns
// beside it, the derived tables, the index and the log's id.
import { isDeepStrictEqual } from 'node:util';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { listingsOf } from '../../../projections/listings.ts';
import { encodeState, STATE_VERSION } from '../../../projections/snapshot.ts';
import { LOG_ID, toHex } from '../../vocabulary/values.ts';
import {
  EMPTY_STREAM,
  type Fault,
  type FsckSummary,
  registrationKey,
  streamOf,
  type VerifiedStream,
  verifyEvent,
} from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import { isPhaseRow, type PhaseRow } from './chamber-phases.ts';
import { readClock } from './clock.ts';
import { reasonOf } from './database-file.ts';
import { DERIVED_TABLES } from './derived-tables.ts';
import { prefixOf, WATERMARK } from './event-index.ts';
import { type ChamberRow, fromRow, Listings } from './listings.ts';
import { migrate } from './migration.ts';
import { type INDEX_TABLES, SCHEMA_VERSION } from './schema.ts';
import { checksumOf, type SnapshotRow } from './snapshots.ts';
import {
  accountEvents,
  COPIED_THROUGH,
  chamberEvents,
  openReader,
  type PositionedEvent,
  readMeta,
} from './stored-events.ts';

/**
 * Reports the faults in the order of the log, so that the first one with a position is the first bad event. Of each stream it
 * reports only the first, because later events build on it. Throws if the file cannot be read as a database of ours.
 */
export function fsckDatabase(path: string, report: (fault: Fault) => void): FsckSummary {
  const db = openReader(path);
  requireCurrent(db);
  const scratch = new Database('');
  try {
    migrate(scratch);
    return new Fsck(db, scratch).run(report);
  } finally {
    scratch.close();
    db.close();
  }
}

/** The lines of an earlier schema may lack what is checked. */
function requireCurrent(db: Database.Database): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version === SCHEMA_VERSION) return;
  db.close();
  throw new Error(`the file has schema ${version}, which the first start of this version migrates`);
}

interface Checksums {
  readonly line_crc: number | null;
  readonly nodes_crc: number | null;
}

class Fsck {
  readonly #db: Database.Database;
  /** Holds the derived tables as rebuilt from the lines, on disk if they are large. */
  readonly #scratch: Database.Database;
  readonly #derived: Listings;
  readonly #faults: Fault[] = [];
  readonly #badStreams = new Set<StreamId>();
  /** The events of those that are not checked yet, by stream. */
  readonly #snapshots = new Map<StreamId, number>();

  constructor(db: Database.Database, scratch: Database.Database) {
    this.#db = db;
    this.#scratch = scratch;
    this.#derived = new Listings(scratch);
  }

  run(report: (fault: Fault) => void): FsckSummary {
    // One snapshot for all passes, while the service keeps writing.
    this.#db.exec('BEGIN');
    const events = this.#db.prepare<[], number>('SELECT count(*) FROM events').pluck().get() ?? 0;
    const logId = readMeta(this.#db, 'log_id') ?? '';
    if (!LOG_ID.test(logId)) this.#note(null, 'the log has no logId of 32 hex digits');
    this.#read('the file', () => this.#checkFile());
    this.#read('the order of the log', () => this.#checkOrder());
    this.#read('the checksums', () => this.#checkChecksums());
    this.#read('the snapshots', () => this.#readSnapshots());
    const chambers = this.#read('the chambers', () => this.#checkStreams(chamberEvents(this.#db))) ?? 0;
    const accounts = this.#read('the accounts', () => this.#checkStreams(accountEvents(this.#db))) ?? 0;
    this.#read('the signatures', () => this.#checkSignatures());
    this.#read('the registrations', () => this.#checkRegistrations());
    this.#read('the derived tables', () => this.#checkTables());
    this.#read('the phases', () => this.#checkPhases());
    for (const stream of this.#snapshots.keys()) {
      if (!this.#badStreams.has(stream)) this.#faults.push(derivedFault('snapshots', stream));
    }
    this.#read('the index', () => this.#checkIndex());
    const orderOf = ({ position }: Fault) => position ?? Number.POSITIVE_INFINITY;
    for (const fault of this.#faults.sort((a, b) => orderOf(a) - orderOf(b))) report(fault);
    return { logId, events, chambers, accounts, faults: this.#faults.length };
  }

  /** A damaged file may fail in any pass: the others still run. */
  #read<Result>(what: string, pass: () => Result): Result | undefined {
    try {
      return pass();
    } catch (error) {
      this.#note(null, `${what} cannot be read: ${reasonOf(error)}`);
      return undefined;
    }
  }

  #checkFile(): void {
    const rows = this.#db.pragma('integrity_check') as readonly { readonly integrity_check: string }[];
    for (const { integrity_check } of rows) {
      if (integrity_check !== 'ok') this.#note(null, `the file is damaged: ${integrity_check.trim()}`);
    }
  }

  #checkChecksums(): void {
    const events = this.#db.prepare<[], PositionedEvent & Checksums>(
      `SELECT position, chamber_id, account, event_id, CAST(line AS BLOB) AS line, nodes, line_crc, nodes_crc
       FROM events`,
    );
    for (const stored of events.iterate()) {
      const { line, nodes, line_crc, nodes_crc } = stored;
      const isRight = line_crc === crc32(line) && nodes_crc === (nodes && crc32(nodes));
      if (!isRight) this.#note(stored, 'its checksums do not match its line and its tree nodes');
    }
  }

  #readSnapshots(): void {
    const query = this.#db.prepare<[], [StreamId, number]>('SELECT stream, event_id FROM snapshots');
    for (const [stream, eventId] of query.raw().iterate()) this.#snapshots.set(stream, eventId);
  }

  #checkOrder(): void {
    const query = `SELECT position, chamber_id, account, event_id,
      CASE WHEN json_valid(line) THEN json_extract(line, '$.ts') END AS ts FROM events ORDER BY position`;
    // Several nodes wrote the lines of a copy from PostgreSQL: only each stream's are in the order of their time.
    const copiedThrough = Number(readMeta(this.#db, COPIED_THROUGH) ?? 0);
    let position = 0;
    let latest = '';
    for (const row of this.#db.prepare<[], PositionedEvent & { readonly ts: string | null }>(query).iterate()) {
      const isNext = row.position === ++position;
      const isLater = row.ts === null || row.ts >= latest || position <= copiedThrough;
      if (!isNext) this.#note(row, `its position is ${row.position}, not ${position}`);
      else if (!isLater) this.#note(row, 'ts is earlier than that of an earlier event');
      if (!isNext || !isLater) return;
      latest = row.ts ?? latest;
    }
  }

  /** Returns the number of streams. */
  #checkStreams(events: Iterable<PositionedEvent>): number {
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

  #checkEvent(before: VerifiedStream, stored: PositionedEvent): VerifiedStream {
    try {
      const verified = verifyEvent(before, stored);
      const { chamber, event } = verified;
      const key = registrationKey(event);
      if (key !== undefined) this.#requireRemembered(stored, key);
      if (chamber !== null) {
        for (const listing of listingsOf(before.chamber, chamber)) this.#derived.write(listing, chamber.lastAt);
      }
      const stream = streamOf(stored);
      if (this.#snapshots.get(stream) === stored.event_id) this.#checkSnapshot(stream, verified);
      return verified;
    } catch (error) {
      this.#badStreams.add(streamOf(stored));
      this.#note(stored, reasonOf(error));
      return before;
    }
  }

  #requireRemembered({ account, event_id }: PositionedEvent, key: Buffer): void {
    const query = 'SELECT count(*) FROM registrations WHERE signature_hash = ? AND did = ? AND event_id = ?';
    const found = this.#db.prepare<[Buffer, string | null, number], number>(query).pluck().get(key, account, event_id);
    if (found !== 1) throw new Error('its signature is not in the table registrations');
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

  /** One of another version is dropped when it is met. */
  #checkSnapshot(stream: StreamId, { chamber, account, headHash }: VerifiedStream): void {
    this.#snapshots.delete(stream);
    const query = 'SELECT * FROM snapshots WHERE stream = ?';
    const row = this.#db.prepare<[StreamId], SnapshotRow>(query).get(stream);
    const state = chamber ?? account;
    if (row === undefined || state === null || row.version !== STATE_VERSION) return;
    const isRight =
      toHex(row.leaf) === headHash && row.state === encodeState(state) && row.checksum.equals(checksumOf(row));
    if (!isRight) this.#faults.push(derivedFault('snapshots', stream));
  }

  /** A row may be overdue, but not ahead of the log's clock. */
  #checkPhases(): void {
    const now = readClock(this.#db);
    const find = this.#db.prepare<[number], PhaseRow>(
      'SELECT phase, next_deadline FROM chamber_phases WHERE chamber_id = ?',
    );
    for (const row of this.#scratch.prepare<[], ChamberRow>('SELECT * FROM chambers').iterate()) {
      const listing = fromRow(row);
      const { chamberId } = listing;
      if (this.#badStreams.has(chamberId) || isPhaseRow(listing, find.get(chamberId), now)) continue;
      this.#faults.push(derivedFault('chamber_phases', chamberId));
    }
    const isChamber = this.#scratch.prepare<[number]>('SELECT 1 FROM chambers WHERE chamber_id = ?');
    for (const chamberId of this.#db.prepare<[], number>('SELECT chamber_id FROM chamber_phases').pluck().iterate()) {
      if (this.#badStreams.has(chamberId) || isChamber.get(chamberId) !== undefined) continue;
      this.#faults.push(derivedFault('chamber_phases', chamberId));
    }
  }

  #checkSignatures(): void {
    const repeated = this.#db.prepare<[], PositionedEvent>(
      `SELECT * FROM events WHERE position IN (
        SELECT position FROM (
          SELECT position, row_number() OVER (PARTITION BY signature ORDER BY position) AS nth
          FROM events WHERE signature IS NOT NULL
        ) WHERE nth > 1)`,
    );
    for (const stored of repeated.iterate()) this.#note(stored, 'its signature is in the log already');
  }

  /** What is kept of an account outside the log belongs to a registration in the log. */
  #checkRegistrations(): void {
    const registered = `FROM events
      WHERE account IS NOT NULL AND json_valid(line) AND json_extract(line, '$.type') = 'agent.registered'`;
    const contacts = `SELECT did FROM contacts WHERE did NOT IN (SELECT account ${registered})`;
    const hashes = `SELECT did FROM registrations WHERE (did, event_id) NOT IN (SELECT account, event_id ${registered})`;
    const strays = this.#db.prepare<[], string>(`${contacts} UNION ${hashes}`).pluck();
    for (const stream of strays.iterate()) {
      const problem = 'an e-mail address or a signature is kept of a registration that is not in the log';
      this.#faults.push({ position: null, stream, eventId: null, problem });
    }
  }

  /** Up to the watermark: the service holds later events in memory. */
  #checkIndex(): void {
    const watermark = Number(readMeta(this.#db, WATERMARK));
    const last = this.#db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() ?? 0;
    if (!(watermark >= 0 && watermark <= last)) {
      this.#note(null, `the index ends at position ${watermark}, the log at ${last}`);
    }
    for (const [table, query] of Object.entries(INDEX_DIFFERENCES)) {
      for (const stream of this.#db.prepare<[number], StreamId | null>(query).pluck().iterate(watermark)) {
        if (stream === null || !this.#badStreams.has(stream)) this.#faults.push(derivedFault(table, stream));
      }
    }
  }

  #note(stored: PositionedEvent | null, problem: string): void {
    const { position = null, event_id: eventId = null } = stored ?? {};
    this.#faults.push({ position, stream: stored && streamOf(stored), eventId, problem });
  }
}

/** Selects the streams of events up to a position whose entry is missing or wrong, and of entries without an event. */
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
  const problem = `table ${table} does not match the log: run chambers rebuild`;
  return { position: null, stream, eventId: null, problem };
}

const KEYS = {
  chambers: 'chamber_id = @chamber_id',
  ideas: 'chamber_id = @chamber_id AND slot = @slot',
  members: 'did = @did AND chamber_id = @chamber_id',
  turns: 'chamber_id = @chamber_id',
} as const;

interface DerivedRow {
  readonly chamber_id: number;
}

/** The chambers of the rows in one database that the other lacks or holds differently. */
function* unmatched(one: Database.Database, other: Database.Database, table: keyof typeof KEYS): Generator<number> {
  const find = other.prepare<[DerivedRow], DerivedRow>(`SELECT * FROM ${table} WHERE ${KEYS[table]}`);
  for (const row of one.prepare<[], DerivedRow>(`SELECT * FROM ${table}`).iterate()) {
    if (!isDeepStrictEqual(find.get(row), row)) yield row.chamber_id;
  }
}
