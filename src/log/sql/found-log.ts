// A log as a start finds it: what both kinds of database hold in the same tables, also in those of an earlier release.
import { CLOCK_RESET, parseReset } from '../clock-reset.ts';
import { CHAIN_ID, COPIED_FROM, type FoundLog, OPEN_CHAMBERS_MAX } from '../found-log.ts';
import { HAD_KEYS } from '../log-id.ts';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import type { Sql } from './sql.ts';

type Own = Pick<FoundLog, 'isMigrationDue' | 'lastAt' | 'now' | 'proveTree'>;

export async function readFoundLog(sql: Sql, own: Own): Promise<FoundLog> {
  const rows = await sql.query<{ readonly name: string; readonly value: string }>('SELECT name, value FROM meta');
  const meta = new Map(rows.map(({ name, value }) => [name, value]));
  requireNotMoved(meta.get(MOVED_TO));
  const chainId = meta.get(CHAIN_ID);
  const [last] = await sql.query<ChamberRow>('SELECT coalesce(max(chamber_id), 0) AS chamber_id FROM chambers');
  const open = await sql.query<ChamberRow>(OPEN_CHAMBERS, [OPEN_CHAMBERS_MAX]);
  return {
    ...own,
    logId: meta.get('log_id') ?? '',
    hadKeys: meta.has(HAD_KEYS),
    isCopy: meta.has(COPIED_FROM),
    chainId: chainId === undefined ? undefined : Number(chainId),
    reset: parseReset(meta.get(CLOCK_RESET)),
    lastChamberId: last?.chamber_id ?? 0,
    openChamberIds: open.map((row) => row.chamber_id),
  };
}

const OPEN_CHAMBERS = 'SELECT chamber_id FROM chambers WHERE NOT is_committed ORDER BY chamber_id DESC LIMIT $1';

type ChamberRow = Readonly<Record<'chamber_id', number>>;
