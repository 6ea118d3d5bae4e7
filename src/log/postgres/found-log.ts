// The log in a database on a server, as a start finds it.
import type { Client } from 'pg';
import { CLOCK_RESET, parseReset } from '../clock-reset.ts';
import { Damages } from '../damage.ts';
import { CHAIN_ID, COPIED_FROM, type FoundLog, OPEN_CHAMBERS_MAX } from '../found-log.ts';
import { HAD_KEYS } from '../log-id.ts';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import type { PublishedTree } from '../published-tree.ts';
import { Connections, connectFirst, runnerOn } from './connections.ts';
import { describeDatabase } from './database-url.ts';
import { PostgresPublishedTree } from './published-tree.ts';
import { readLastAt } from './reset-clock.ts';
import { findVersion, isUpgradeDue, readMeta, requireServer } from './schema.ts';

export interface FoundDatabase {
  /** For people. */
  readonly detail: string;
  readonly hasSynchronousStandby: boolean;
  /** Undefined where the start makes a new one. */
  readonly log: FoundLog | undefined;
}

/** Throws the Error that a start would end with: one line, without the password. */
export function findPostgresLog(url: string): Promise<FoundDatabase> {
  return onConnection(url, async (client) => {
    const server = await requireServer(client);
    const { rows } = await client.query("SELECT current_setting('synchronous_standby_names') <> '' AS has_standby");
    const version = await findVersion(client);
    return {
      detail: `${describeDatabase(url)} is ${server} and takes writes`,
      hasSynchronousStandby: rows[0]?.has_standby === true,
      log: version === undefined ? undefined : await readFound(client, { url, isMigrationDue: isUpgradeDue(version) }),
    };
  });
}

async function onConnection<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const connections = new Connections(url, 1);
  const result = await connectFirst(connections, url, work);
  await connections.close();
  return result;
}

interface Found {
  readonly url: string;
  readonly isMigrationDue: boolean;
}

async function readFound(client: Client, { url, isMigrationDue }: Found): Promise<FoundLog> {
  requireNotMoved(await readMeta(client, MOVED_TO));
  const logId = (await readMeta(client, 'log_id')) ?? '';
  const chainId = await readMeta(client, CHAIN_ID);
  const { rows } = await client.query('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
  return {
    logId,
    isMigrationDue,
    hadKeys: (await readMeta(client, HAD_KEYS)) !== undefined,
    isCopy: (await readMeta(client, COPIED_FROM)) !== undefined,
    chainId: chainId === undefined ? undefined : Number(chainId),
    lastAt: await readLastAt(client),
    now: rows[0].now,
    reset: parseReset(await readMeta(client, CLOCK_RESET)),
    ...(await lastChambers(client)),
    async proveTree(work) {
      if (isMigrationDue) return;
      // An error of the work is no error of the connection.
      const [proof] = await onConnection(url, (own) => Promise.allSettled([work(treeOn(own, logId))]));
      if (proof.status === 'rejected') throw proof.reason;
    },
  };
}

function treeOn(client: Client, logId: string): PublishedTree {
  const runner = runnerOn(client);
  return new PostgresPublishedTree({ logId, connections: runner, commits: runner, damages: new Damages() });
}

async function lastChambers(client: Client) {
  const { rows } = await client.query<{ readonly last: number; readonly open: readonly number[] }>(
    `SELECT (SELECT coalesce(max(chamber_id), 0) FROM chambers)::float8 AS last, ARRAY(
       SELECT chamber_id::float8 FROM chambers WHERE NOT is_committed ORDER BY chamber_id DESC LIMIT $1
     ) AS open`,
    [OPEN_CHAMBERS_MAX],
  );
  return { lastChamberId: rows[0]?.last ?? 0, openChamberIds: rows[0]?.open ?? [] };
}
