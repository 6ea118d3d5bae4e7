// The log in a database on a server, as a start finds it.
import type { Client } from 'pg';
import { Damages } from '../damage.ts';
import type { FoundLog } from '../found-log.ts';
import type { PublishedTree } from '../published-tree.ts';
import { readFoundLog } from '../sql/meta.ts';
import { Connections, connectFirst, runnerOn } from './connections.ts';
import { describeDatabase } from './database-url.ts';
import { readLastAt, readNow } from './meta.ts';
import { PostgresPublishedTree } from './published-tree.ts';
import { requireServer } from './requirements.ts';
import { findLog } from './schema.ts';

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
    const isThere = await findLog(client);
    return {
      detail: `${describeDatabase(url)} is ${server} and takes writes`,
      hasSynchronousStandby: rows[0]?.has_standby === true,
      log: isThere ? await readFound(client, url) : undefined,
    };
  });
}

async function onConnection<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const connections = new Connections(url, 1);
  const result = await connectFirst(connections, url, work);
  await connections.close();
  return result;
}

async function readFound(client: Client, url: string): Promise<FoundLog> {
  const log = await readFoundLog(runnerOn(client), {
    isMigrationDue: false,
    lastAt: await readLastAt(client),
    now: await readNow(client),
    async proveTree(work) {
      // An error of the work is no error of the connection.
      const [proof] = await onConnection(url, (own) => Promise.allSettled([work(treeOn(own, log.logId))]));
      if (proof.status === 'rejected') throw proof.reason;
    },
  });
  return log;
}

function treeOn(client: Client, logId: string): PublishedTree {
  const runner = runnerOn(client);
  return new PostgresPublishedTree({ logId, sql: runner, commits: runner, damages: new Damages() });
}
