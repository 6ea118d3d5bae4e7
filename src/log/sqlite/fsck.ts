// Checks a whole database against its raw lines, read-only and during service: the file, every line and the columns
// next to it, the derived tables, the index, the published tree and the log's id.
import { crc32 } from 'node:zlib';
import type { Database } from 'better-sqlite3';
import { listingsOf } from '../../../projections/listings.ts';
import { encodeState, STATE_VERSION } from '../../../projections/snapshot.ts';
import { LOG_ID, toHex } from '../../vocabulary/values.ts';
import { DERIVED_TABLES, selectDifferences } from '../derived-tables.ts';
import { decodeChamber } from '../listing-json.ts';
import type { ListingRow } from '../lists.ts';
import {
  EMPTY_STREAM,
  type Fault,
  type FsckSummary,
  registrationKey,
  streamOf,
  type VerifiedStream,
  verifyEvent,
} from '../stored-stream.ts';
import { StreamFold } from '../stream-fold.ts';
import type { StreamId } from '../stream-id.ts';
import { TreeCheck, type TreeFault } from '../tree-check.ts';
import { isPhaseRow, type PhaseRow } from './chamber-phases.ts';
import { readClock } from './clock.ts';
import { reasonOf } from './database-file.ts';
import { DerivedRows, TEMPORARY } from './derived-tables.ts';
import { prefixOf, WATERMARK } from './event-index.ts';
import { openReader, readMeta } from './reader.ts';
import { type INDEX_TABLES, SCHEMA_VERSION } from './schema.ts';
import { checksumOf, type SnapshotRow } from './snapshots.ts';
import {
  COPIED_THROUGH,
  eventsByStream,
  type PositionedEvent,
  publishedLines,
  storedCheckpoint,
  storedTile,
} from './stored-events.ts';

/**
 * Reports the faults in the order of the log, so that the first one with a position is the first bad event. Of each stream it
 * reports only the first, because later events build on it. Throws if the file cannot be read as a database of ours.
 */
export function fsckDatabase(path: string, report: (fault: Fault) => void): FsckSummary {
  const db = openReader(path);
  try {
    requireCurrent(db);
    return new Fsck(db).run(report);
  } finally {
    db.close();
  }
}

/** The lines of an earlier schema may lack what is checked. */
function requireCurrent(db: Database): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version === SCHEMA_VERSION) return;
  throw new Error(`the file has schema ${version}, which the first start of this version migrates`);
}

interface Checksums {
  readonly line_crc: number | null;
  readonly nodes_crc: number | null;
}

class Fsck {
  readonly #db: Database;
  readonly #fold: StreamFold<PositionedEvent, VerifiedStream>;
  readonly #faults: Fault[] = [];
  /** The events of those that are not checked yet, by stream. */
  readonly #snapshots = new Map<StreamId, number>();

  constructor(db: Database) {
    this.#db = db;
    this.#fold = new StreamFold<PositionedEvent, VerifiedStream>(
      (before, stored) => this.#checkEvent(before ?? EMPTY_STREAM, stored),
      (stored, error) => this.#note(stored, reasonOf(error)),
    );
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
    this.#read('the chambers', () => this.#checkChambers());
    this.#read('the accounts', () => {
      for (const stored of eventsByStream(this.#db, 'account')) this.#fold.add(stored);
    });
    this.#read('the signatures', () => this.#checkSignatures());
    this.#read('the registrations', () => this.#checkRegistrations());
    this.#read('the derived tables', () => this.#checkTables());
    this.#read('the phases', () => this.#checkPhases());
    for (const stream of this.#snapshots.keys()) this.#noteDerived('snapshots', stream);
    this.#read('the index', () => this.#checkIndex());
    this.#read('the published tree', () => this.#checkTree(logId));
    const orderOf = ({ position }: Fault) => position ?? Number.POSITIVE_INFINITY;
    for (const fault of this.#faults.sort((a, b) => orderOf(a) - orderOf(b))) report(fault);
    const { chambers, accounts } = this.#fold;
    return { logId, events, chambers, accounts, faults: this.#faults.length };
  }

  /** A damaged file may fail in any pass: the others still run. */
  #read(what: string, pass: () => void): void {
    try {
      pass();
    } catch (error) {
      this.#note(null, `${what} cannot be read: ${reasonOf(error)}`);
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

  /** Their derived rows go to temporary tables, on disk if they are large. */
  #checkChambers(): void {
    this.#db.exec(TEMPORARY);
    const rows = new DerivedRows(this.#db);
    for (const stored of eventsByStream(this.#db, 'chamber_id')) {
      const folded = this.#fold.add(stored);
      const chamber = folded?.after.chamber ?? null;
      if (chamber === null) continue;
      for (const listing of listingsOf(folded?.before?.chamber ?? null, chamber)) rows.write(listing);
    }
  }

  #checkEvent(before: VerifiedStream, stored: PositionedEvent): VerifiedStream {
    const verified = verifyEvent(before, stored);
    const key = registrationKey(verified.event);
    if (key !== undefined) this.#requireRemembered(stored, key);
    const stream = streamOf(stored);
    if (this.#snapshots.get(stream) === stored.event_id) this.#checkSnapshot(stream, verified);
    return verified;
  }

  #requireRemembered({ account, event_id }: PositionedEvent, key: Buffer): void {
    const query = 'SELECT count(*) FROM registrations WHERE signature_hash = ? AND did = ? AND event_id = ?';
    const found = this.#db.prepare<[Buffer, string | null, number], number>(query).pluck().get(key, account, event_id);
    if (found !== 1) throw new Error('its signature is not in the table registrations');
  }

  #checkTables(): void {
    for (const table of DERIVED_TABLES) {
      const differences = this.#db.prepare<[], number>(selectDifferences(table, 'main', 'temp')).pluck();
      for (const chamberId of differences.iterate()) this.#noteDerived(table, chamberId);
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
    if (!isRight) this.#noteDerived('snapshots', stream);
  }

  /** A row may be overdue, but not ahead of the log's clock. */
  #checkPhases(): void {
    const now = readClock(this.#db);
    const find = this.#db.prepare<[number], PhaseRow>(
      'SELECT phase, next_deadline FROM chamber_phases WHERE chamber_id = ?',
    );
    for (const { listing } of this.#db.prepare<[], ListingRow>('SELECT listing FROM temp.chambers').iterate()) {
      const chamber = decodeChamber(listing);
      const { chamberId } = chamber;
      if (!isPhaseRow(chamber, find.get(chamberId), now)) this.#noteDerived('chamber_phases', chamberId);
    }
    const strays = this.#db.prepare<[], number>(
      'SELECT chamber_id FROM chamber_phases WHERE chamber_id NOT IN (SELECT chamber_id FROM temp.chambers)',
    );
    for (const chamberId of strays.pluck().iterate()) this.#noteDerived('chamber_phases', chamberId);
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
        this.#noteDerived(table, stream);
      }
    }
  }

  #checkTree(logId: string): void {
    if (!LOG_ID.test(logId)) return;
    const check = new TreeCheck(storedCheckpoint(this.#db, logId));
    const stored = storedTile(this.#db);
    for (const { line } of publishedLines(this.#db, check.size)) {
      for (const tile of check.add(line)) check.compare(tile, stored(tile));
    }
    for (const tile of check.edge()) check.compare(tile, stored(tile));
    const tiles = this.#db.prepare<[], number>('SELECT count(*) FROM tiles').pluck().get() ?? 0;
    const fault = check.rootFault() ?? check.tilesFault(tiles);
    if (fault !== undefined) this.#noteTree(fault);
  }

  #noteTree({ place, problem }: TreeFault): void {
    const query = 'SELECT position, chamber_id, account, event_id FROM events WHERE position = ?';
    const stored = this.#db.prepare<[number | null], PositionedEvent>(query).get(place);
    if (stored === undefined || !this.#fold.badStreams.has(streamOf(stored))) this.#note(stored ?? null, problem);
  }

  /** Notes a difference, except in a bad stream, where the fault in the lines says enough. */
  #noteDerived(table: string, stream: StreamId | null): void {
    if (stream !== null && this.#fold.badStreams.has(stream)) return;
    const problem = `table ${table} does not match the log: run chambers rebuild`;
    this.#faults.push({ position: null, stream, eventId: null, problem });
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
