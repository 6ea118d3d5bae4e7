// Applies the stubs of a running service to another database of its log, such as a backup or a restored copy: all of them or none.
import { StubReader } from '../../crypto/stub-reader.ts';
import { type ForumEvent, fromLine } from '../../vocabulary/events.ts';
import { COPIED_FROM } from '../existing-log.ts';
import { SERVICE_KEYS, toKeyIds } from '../log-id.ts';
import type { StreamId } from '../stream-id.ts';
import type { StubLine } from '../withholding.ts';
import { rebuildDerivedTables } from './rebuild-derived-tables.ts';
import { forgetStubsLog } from './restated-stubs.ts';
import { toStream } from './sql.ts';
import { readMeta, throwFault, type WritableLog } from './whole-log.ts';
import { lastNumber, readOriginals, requireStubOf } from './withheld-lines.ts';
import { chunks, type WithheldLine, withholdStatements } from './withheld-rows.ts';

export interface WithheldIn {
  readonly withheld: number;
  /** Events that already had a stub. */
  readonly alreadyWithheld: number;
  /** Events that the database lacks because it is older than they are. */
  readonly missing: number;
}

/**
 * The caller erases the bytes afterwards. Throws a single-line Error, and changes nothing, if a stub is not signed for this log or does not
 * match its line, or if a line is damaged.
 */
export async function withholdIn(log: WritableLog, lines: AsyncIterable<Uint8Array>): Promise<WithheldIn> {
  await log.requireNoService();
  await log.blockAppends();
  const stubs = await readStubs(log, lines);
  const counts = { withheld: 0, alreadyWithheld: 0, missing: 0 };
  for (const [stream, ofStream] of Map.groupBy(stubs, (stub) => stub.stream)) {
    for (const some of chunks(ofStream)) {
      const originals = await readOriginals(log, some);
      const found = some.filter(({ eventId }) => originals.has(eventId));
      const fresh = found.flatMap((stub): readonly WithheldLine[] => {
        const original = originals.get(stub.eventId);
        return original === undefined || original.number !== null
          ? []
          : [{ ...stub, signature: requireStubOf(stub, original) }];
      });
      counts.withheld += fresh.length;
      counts.alreadyWithheld += found.length - fresh.length;
      counts.missing += some.length - found.length;
      if (fresh.length > 0) await replace(log, stream, fresh);
    }
  }
  await log.emptyDerivedTables();
  await rebuildDerivedTables(log, { into: 'stored', onFault: throwFault });
  await forgetStubsLog(log);
  await log.commit();
  return counts;
}

async function readStubs(log: WritableLog, lines: AsyncIterable<Uint8Array>): Promise<readonly StubLine[]> {
  const logIds = [await readMeta(log, 'log_id'), await readMeta(log, COPIED_FROM)];
  // A log that continues this one under another logId signs with the same keys.
  const keyIds = toKeyIds(await readMeta(log, SERVICE_KEYS));
  const reader = new StubReader(({ log: logId, keyid }) =>
    logIds.includes(logId) || keyIds.includes(keyid) ? undefined : `belongs to log ${logId}`,
  );
  const stubs = new Map<string, StubLine>();
  let number = 0;
  for await (const line of lines) {
    number++;
    try {
      const event = fromLine(Buffer.from(line).toString());
      if (event.withheld === undefined) throw new Error('is not a stub');
      reader.leafOf(line, event);
      const stub = { stream: streamOf(event), eventId: event.eventId, line };
      stubs.set(`${stub.stream} ${stub.eventId}`, stubs.get(`${stub.stream} ${stub.eventId}`) ?? stub);
    } catch (error) {
      throw new Error(`stub ${number} ${error instanceof SyntaxError ? 'is not JSON' : (error as Error).message}`, {
        cause: error,
      });
    }
  }
  return [...stubs.values()];
}

function streamOf({ chamberId, did }: ForumEvent): StreamId {
  return toStream(chamberId ?? did ?? '');
}

async function replace(log: WritableLog, stream: StreamId, lines: readonly WithheldLine[]): Promise<void> {
  const [row] = await log.query<{ readonly head: number }>(
    'SELECT max(event_id) AS head FROM events WHERE stream = $1',
    [log.dialect.streamKey(stream)],
  );
  const after = await lastNumber(log);
  const plan = { after, streams: [{ stream, head: row?.head ?? 0, lines, rows: [] }] };
  log.allowStubs(lines);
  for (const { text, values } of withholdStatements(log.dialect, plan)) await log.query(text, values);
  if ((await lastNumber(log)) !== after + lines.length) throw new Error('the log changed in the meantime');
}
