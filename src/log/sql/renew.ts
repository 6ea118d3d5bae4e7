// Gives a database an id of its own, under which it goes on as another log. One that has moved may take events again then.
import { COPIED_FROM } from '../found-log.ts';
import type { Renewal } from '../log-id.ts';
import { MOVED_TO } from '../moved.ts';
import type { SqlTransaction } from './sql.ts';
import { CHECKPOINTS, upsert } from './tables.ts';
import { readMeta, type WritableLog, writeMeta } from './whole-log.ts';

/** The logIds of a copy and of its original. */
export interface RenewedId {
  readonly logId: string;
  readonly copiedFrom: string;
}

/** A node that still runs writes nothing more once it sees the new id. */
export async function renewLog(log: WritableLog, renewal: Renewal): Promise<RenewedId> {
  await log.holdAppends();
  const renewed = await renewLogId(log, renewal);
  await log.allowAppends(true);
  renewal.prepare?.();
  await log.commit();
  return renewed;
}

export async function renewLogId(log: SqlTransaction, { logId, former }: Renewal): Promise<RenewedId> {
  const copiedFrom = (await readMeta(log, 'log_id')) ?? '';
  await writeMeta(log, 'log_id', logId);
  await writeMeta(log, COPIED_FROM, copiedFrom);
  await log.query('DELETE FROM meta WHERE name = $1', [MOVED_TO]);
  // The tree is published again, under the new name.
  await log.run('DELETE FROM tiles');
  if (former !== undefined) {
    await log.query(upsert(CHECKPOINTS, 'VALUES ($1, $2, $3)'), [former.logId, former.size, former.note]);
  }
  return { logId, copiedFrom };
}
