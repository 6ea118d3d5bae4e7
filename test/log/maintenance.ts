// The contract of fsck and rebuild for logs of either store that another program has changed.
import { readFileSync, writeFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { SqlValue } from '../../src/log/sql/sql.ts';
import { DERIVED_TABLES } from '../../src/log/sql/tables.ts';
import { type ForumEvent, fromLine, toLine } from '../../src/vocabulary/events.ts';
import { NO_PREVIOUS } from '../../src/vocabulary/values.ts';
import { faultsOf, fsckLog, rebuildLog } from '../durability/log-book.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';

export interface Maintained {
  /** Moves the log of a closed SQLite file into this store, and returns its path or URL. */
  readonly move: (path: string) => Promise<string>;
  /** Runs one statement as a program that disables the triggers first. */
  readonly tamper: (place: string, sql: string, ...values: readonly SqlValue[]) => Promise<readonly Row[]>;
  /** Encodes a value for the column `line`. */
  readonly toColumn: (line: string) => string | Buffer;
  /** Whether reported faults in lines have a position. */
  readonly hasPositions: boolean;
}

type Row = Readonly<Record<string, unknown>>;

/** Enough accounts to fill one tile and begin the next. */
const ACCOUNTS = 260;
const LINES = ACCOUNTS + 7;
const EVENT_5 = "CAST(stream AS text) = '1' AND event_id = 5";
const ZEROS = Buffer.alloc(32);

let original: Promise<Buffer> | undefined;

/**
 * Writes a published and closed file with accounts and a chamber in its debate: event 3 is a proposal, events 4 to 6 are
 * comments.
 */
export async function writtenLog(): Promise<string> {
  original ??= write().then((path) => readFileSync(path));
  const path = temporaryDatabase();
  writeFileSync(path, await original);
  return path;
}

async function write(): Promise<string> {
  const path = temporaryDatabase();
  const service = new TestService({ path });
  const by = await service.agent();
  for (let agents = 1; agents < ACCOUNTS; agents++) await service.agent();
  // A registration without an e-mail address is recorded with its whole request.
  const { operatorEmail: _, ...registration } = registrationOf(by);
  await service.must('POST', '/register', { by, body: { ...registration, personality: { style: 'new' } } });
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'PROPOSAL');
  await service.must('POST', `/chambers/${id}/propose`, { by, body: { name: 'One', ticker: 'ONE' } });
  await enterPhase(service, id, 'DEBATE');
  for (const comment of ['one', 'two', 'three'])
    await service.must('POST', `/chambers/${id}/debate`, { by, body: { comment } });
  await service.publish();
  expect(await service.log.lastPlace()).toBe(LINES);
  await service.close();
  return path;
}

type Edit = (event: ForumEvent) => ForumEvent | string;

const EDITS: readonly (readonly [string, Edit, string])[] = [
  ['changed', (event) => ({ ...event, payload: { comment: 'never said' } }) as ForumEvent, 'column nodes'],
  ['not canonical', (event) => ` ${toLine(event)}`, 'not in canonical form'],
  ['not JSON', () => 'gone', 'not JSON'],
  ['of another chamber', (event) => ({ ...event, chamberId: 9 }) as ForumEvent, 'chamberId is 9'],
  ['numbered differently', (event) => ({ ...event, eventId: 9 }), 'eventId is 9'],
  ['backdated', (event) => ({ ...event, ts: '2020-01-01T00:00:00.000Z' }), 'ts is earlier than'],
  ['chained differently', (event) => ({ ...event, prev: NO_PREVIOUS }), 'prev is not'],
];

type Tampering = readonly [sql: string, stream: unknown, eventId: number | null, problem: string];

const COLUMN_FAULTS: readonly Tampering[] = [
  [`UPDATE events SET signature = $1 WHERE ${EVENT_5}`, 1, 5, 'column signature'],
  [`UPDATE events SET nodes = $1 WHERE ${EVENT_5}`, 1, 5, 'column nodes'],
  [`UPDATE events SET event_id = 99 WHERE ${EVENT_5}`, 1, 6, 'column event_id is 6, not 5'],
  [`UPDATE events SET line_crc = 1 WHERE ${EVENT_5}`, 1, 5, 'checksums'],
  [`DELETE FROM events WHERE ${EVENT_5}`, 1, 6, 'column event_id is 6, not 5'],
];

const KEPT_FAULTS: readonly Tampering[] = [
  ["DELETE FROM meta WHERE name = 'log_id'", null, null, 'the log has no logId'],
  ["INSERT INTO contacts VALUES ('did:key:none', $1)", 'did:key:none', null, 'not in the log'],
  [
    "INSERT INTO callbacks VALUES ('did:key:none', 'https://example.org/', 1, NULL, 0, NULL, NULL, NULL)",
    'did:key:none',
    null,
    'not in the log',
  ],
  ["INSERT INTO registrations VALUES ($1, 'did:key:none', 1, true)", 'did:key:none', 1, 'not in the log'],
  ["UPDATE checkpoints SET note = ''", null, null, 'the stored checkpoint does not have size'],
  ['UPDATE checkpoints SET size = size + 1', null, null, 'the stored checkpoint does not have size'],
];

const STALE_TILES = 'table tiles does not match the log: run chambers rebuild';

const DERIVED_FAULTS: readonly Tampering[] = [
  ["UPDATE chambers SET listing = '{}'", 1, null, 'table chambers'],
  ['DELETE FROM chambers', 1, null, 'table chambers'],
  ['DELETE FROM ideas', 1, null, 'table ideas'],
  ['UPDATE members SET is_open = NOT is_open', 1, null, 'table members'],
  ["INSERT INTO turns VALUES (99, '{}')", 99, null, 'table turns'],
  ["INSERT INTO snapshots VALUES ('99', 1, 2, $1, '', 0)", 99, 1, 'table snapshots'],
  ['UPDATE tiles SET hashes = $1 WHERE level = 0 AND tile = 1', null, null, STALE_TILES],
  ['UPDATE tiles SET hashes = $1 WHERE level = -1 AND tile = 0', null, null, STALE_TILES],
  ['DELETE FROM tiles WHERE level = 1', null, null, STALE_TILES],
  ['INSERT INTO tiles VALUES (0, 2, $1)', null, null, STALE_TILES],
];

export function describeMaintenance({ move, tamper, toColumn, hasPositions }: Maintained): void {
  const written = async () => move(await writtenLog());

  async function change(sql: string): Promise<string> {
    const place = await written();
    await tamper(place, sql, ...(sql.includes('$1') ? [ZEROS] : []));
    return place;
  }

  async function editLine(place: string, where: string, edit: Edit): Promise<string> {
    const [row] = await tamper(place, `SELECT line FROM events WHERE ${where}`);
    const edited = edit(fromLine(String(row?.['line'])));
    const line = typeof edited === 'string' ? edited : toLine(edited);
    await tamper(place, `UPDATE events SET line = $1 WHERE ${where}`, toColumn(line));
    return line;
  }

  const rowsOf = (place: string) =>
    Promise.all([...DERIVED_TABLES, 'tiles'].map((table) => tamper(place, `SELECT * FROM ${table} ORDER BY 1, 2`)));

  describe('fsck', () => {
    it('fsck reports nothing for a sound log', async () => {
      expect(await fsckLog(await written())).toEqual({
        logId: expect.stringMatching(/^[0-9a-f]{32}$/),
        events: LINES,
        chambers: 1,
        accounts: ACCOUNTS,
        faults: 0,
      });
    });

    it.each(EDITS)('fsck names the first bad event if a line is %s', async (_title, edit, problem) => {
      const place = await written();
      await editLine(place, EVENT_5, edit);
      const [first] = await faultsOf(place);
      expect(first).toMatchObject({ stream: 1, eventId: 5, problem: expect.stringContaining(problem) });
      expect(typeof first?.position).toBe(hasPositions ? 'number' : 'object');
    });

    it.each([...COLUMN_FAULTS, ...KEPT_FAULTS])(
      'fsck reports the fault after %s',
      async (sql, stream, eventId, problem) => {
        const fault = { stream, eventId, problem: expect.stringContaining(problem) };
        expect(await faultsOf(await change(sql))).toContainEqual(expect.objectContaining(fault));
      },
    );

    it('fsck reports a registration whose signature could be replayed', async () => {
      const [fault] = await faultsOf(await change('DELETE FROM registrations WHERE NOT covers_email'));
      expect(fault?.problem).toBe('its signature is not in the table registrations');
    });
  });

  describe('rebuild', () => {
    it.each(DERIVED_FAULTS)(
      'rebuild fixes the fault that fsck reports after %s',
      async (sql, stream, eventId, problem) => {
        const place = await written();
        const before = await rowsOf(place);
        await tamper(place, sql, ...(sql.includes('$1') ? [ZEROS] : []));
        const fault = { position: null, stream, eventId, problem: expect.stringContaining(problem) };
        expect(await faultsOf(place)).toEqual([fault]);
        expect(await rebuildLog(place)).toEqual({ chambers: 1, ideas: 1 });
        expect(await rowsOf(place)).toEqual(before);
        expect(await faultsOf(place)).toEqual([]);
      },
    );

    async function expectRejected(place: string, problem: string): Promise<void> {
      await tamper(place, 'DELETE FROM turns');
      const before = await rowsOf(place);
      await expect(rebuildLog(place)).rejects.toThrow(problem);
      expect(await rowsOf(place)).toEqual(before);
    }

    it('rebuild rejects a log with a gap, and changes nothing', async () => {
      const place = await change(`UPDATE events SET event_id = 99 WHERE ${EVENT_5}`);
      await expectRejected(place, 'event 6 of 1 is damaged: column event_id is 6, not 5');
    });

    it('rebuild rejects a log with a damaged line, and changes nothing', async () => {
      const place = await written();
      await editLine(place, EVENT_5, () => 'gone');
      await expectRejected(place, 'event 5 of 1 is damaged: the line is not JSON');
    });

    it('fsck reports and rebuild rejects a line that was changed together with everything derived from it', async () => {
      const place = await written();
      // No other line contains the hash of a stream's only line.
      const [only] = await tamper(
        place,
        'SELECT max(stream) AS stream FROM events GROUP BY stream HAVING count(*) = 1',
      );
      const stream = only?.['stream'];
      const where = `stream = '${stream}'`;
      const edit: Edit = (event) =>
        ({ ...event, payload: { ...event.payload, personality: { style: 'changed' } } }) as ForumEvent;
      const line = await editLine(place, where, edit);
      await tamper(place, `UPDATE events SET line_crc = ${crc32(line)} WHERE ${where}`);
      const problem =
        /^it is not the line that the published checkpoint covers: restore a backup, or run chambers new-log to/;
      const position = hasPositions ? expect.any(Number) : null;
      expect(await faultsOf(place)).toEqual([
        { position, stream, eventId: 1, problem: expect.stringMatching(problem) },
      ]);
      await expectRejected(place, 'lines are not those that the published checkpoint covers');
    });
  });
}
