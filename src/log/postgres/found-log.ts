// A log in PostgreSQL as a start finds it.
import type { Client } from 'pg';
import { Damages } from '../damage.ts';
import type { FoundLog } from '../found-log.ts';
import type { PublishedTree } from '../published-tree.ts';
import { readFoundLog } from '../sql/meta.ts';
import { onFirstConnection, runnerOn } from './connections.ts';
import { describeDatabase } from './database-url.ts';
import { readLastAt, readNow } from './meta.ts';
import { PostgresPublishedTree } from './published-tree.ts';
import { requireServer } from './requirements.ts';
import { findLog, isMigrationDue } from './schema.ts';

export interface FoundDatabase {
  readonly detail: string;
  readonly hasSynchronousStandby: boolean;
  /** Undefined if the start creates one. */
  readonly log: FoundLog | undefined;
}

/** Throws the Error with which a start would fail: one line, without the password. */
export function findPostgresLog(url: string): Promise<FoundDatabase> {
  return onFirstConnection(url, async (client) => {
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

async function readFound(client: Client, url: string): Promise<FoundLog> {
  const log = await readFoundLog(runnerOn(client), {
    isMigrationDue: await isMigrationDue(client),
    lastAt: await readLastAt(client),
    now: await readNow(client),
    async proveTree(work) {
      // An error of the work must not read as one of the connection.
      const [proof] = await onFirstConnection(url, (own) => Promise.allSettled([work(treeOn(own, log.logId))]));
      if (proof.status === 'rejected') throw proof.reason;
    },
  });
  return log;
}

function treeOn(client: Client, logId: string): PublishedTree {
  const runner = runnerOn(client);
  return new PostgresPublishedTree({ logId, sql: runner, commits: runner, damages: new Damages() });
}
