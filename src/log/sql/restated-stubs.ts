// The stubs of a log that continues under another logId: each is replaced by the same stub, signed for this log. Its number, leaf and facts
// do not change, nor does any row, snapshot or tree. `meta` names the log that all stubs are signed for, so a start with nothing to do reads
// only one row.
import { crc32 } from 'node:zlib';
import { unavailable } from '../../vocabulary/errors.ts';
import { fromLine } from '../../vocabulary/events.ts';
import type { DamagedStreams } from '../damage.ts';
import type { EventLog } from '../log.ts';
import type { RestateStub, StubLine } from '../withholding.ts';
import { findDamage } from './event-log.ts';
import { type Dialect, type Sql, type SqlTransaction, toStream } from './sql.ts';
import { META, upsert } from './tables.ts';
import { lastNumber, linesOf, NUMBERED, type NumberedLine } from './withheld-lines.ts';
import { ROWS_PER_STATEMENT, type WithholdStatement } from './withheld-rows.ts';

/** `meta` key of the logId that every stub is signed for. */
const STUBS_LOG = 'stubs_log';

/** Makes the next start check every stub. */
export async function forgetStubsLog(log: SqlTransaction): Promise<void> {
  await log.query('DELETE FROM meta WHERE name = $1', [STUBS_LOG]);
}

export interface RestatedStub extends StubLine {
  readonly number: number;
  /** The line that the stub replaces. */
  readonly former: Uint8Array;
}

type Write = (stubs: readonly RestatedStub[], statements: readonly WithholdStatement[]) => Promise<boolean>;

interface Parts {
  readonly sql: Sql;
  readonly log: Pick<EventLog, 'logId'>;
  readonly damagedStreams: DamagedStreams;
}

/** Limits the retries of nodes that start together and replace the same stubs. */
const CONFLICTS_MAX = 100;

interface Batch {
  readonly stubs: readonly RestatedStub[];
  /** The number of the last stub in the batch. */
  readonly last: number;
  readonly isLast: boolean;
  /** Whether a line could not be read. The next start tries it again. */
  readonly isDamaged: boolean;
}

/** Returns the number of replaced stubs. If another process replaced one of them first, `write` returns false and the batch is read again. */
export async function restateStubs(parts: Parts, restateStub: RestateStub, write: Write): Promise<number> {
  const { sql, log } = parts;
  if ((await lastNumber(sql)) === 0 || (await stubsLog(parts)) === log.logId) return 0;
  let [after, count, isWhole, conflicts] = [0, 0, true, 0];
  for (let isDone = false; !isDone; ) {
    const { stubs, last, isLast, isDamaged } = await readBatch(parts, after, restateStub);
    const isWholeNow = isWhole && !isDamaged;
    const statements = stubs.flatMap((stub) => replaceStub(sql.dialect, stub));
    if (isLast && isWholeNow)
      statements.push({ text: upsert(META, 'VALUES ($1, $2)'), values: [STUBS_LOG, log.logId] });
    if (statements.length > 0 && !(await write(stubs, statements))) {
      if (++conflicts >= CONFLICTS_MAX) throw unavailable('the stubs cannot be signed for this log, retry');
      continue;
    }
    [after, count, isWhole, isDone] = [last, count + stubs.length, isWholeNow, isLast];
  }
  return count;
}

async function stubsLog({ sql }: Parts): Promise<string | undefined> {
  const [row] = await sql.query<{ readonly value: string }>('SELECT value FROM meta WHERE name = $1', [STUBS_LOG]);
  return row?.value;
}

async function readBatch(parts: Parts, after: number, restateStub: RestateStub): Promise<Batch> {
  const { sql, log, damagedStreams } = parts;
  const rows = await sql.query<NumberedLine>(NUMBERED, [after, ROWS_PER_STATEMENT]);
  const asked = rows.map(({ stream, event_id }) => ({ stream: toStream(stream), eventId: event_id }));
  const found = await linesOf(sql, asked);
  const whole = found.filter((line) => findDamage(damagedStreams, line) === undefined);
  const stubs = whole.flatMap(({ stream, event_id: eventId, line: former, number }): readonly RestatedStub[] => {
    const text = former.toString();
    const { withheld } = fromLine(text);
    // fsck reports a numbered line that is not a stub.
    if (number === null || withheld === undefined || withheld.log === log.logId) return [];
    return [{ stream: toStream(stream), eventId, number, former, line: Buffer.from(restateStub(text)) }];
  });
  const last = rows.at(-1)?.number ?? after;
  return { stubs, last, isLast: rows.length < ROWS_PER_STATEMENT, isDamaged: whole.length < rows.length };
}

/** Rewrites the numbered row too, because PostgreSQL's trigger requires that the same transaction wrote it. */
function replaceStub({ lineOf, streamKey }: Dialect, stub: RestatedStub): readonly WithholdStatement[] {
  const { stream, eventId, number, former, line } = stub;
  const text = `UPDATE events SET line = ${lineOf('$1')}, line_crc = $2
    WHERE stream = $3 AND event_id = $4 AND line = ${lineOf('$5')}`;
  return [
    { text: 'UPDATE withheld SET number = number WHERE number = $1', values: [number], changesMin: 1 },
    { text, values: [line, crc32(line), streamKey(stream), eventId, former], changesMin: 1 },
  ];
}
