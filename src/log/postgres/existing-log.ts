// Inspects an existing log in PostgreSQL before a start.
import type { Client } from 'pg';
import { DamagedStreams } from '../damage.ts';
import type { ExistingLog } from '../existing-log.ts';
import type { PublishedTree } from '../published-tree.ts';
import { readExistingLog } from '../sql/meta.ts';
import { onFirstConnection, runnerOn } from './connections.ts';
import { describeDatabase } from './database-url.ts';
import { readLastAt, readNow } from './meta.ts';
import { PostgresPublishedTree } from './published-tree.ts';
import { requireServer } from './requirements.ts';
import { isMigrationDue, logExists } from './schema.ts';

export interface ExistingDatabase {
  readonly detail: string;
  readonly hasSynchronousStandby: boolean;
  /** Undefined if a start would create the log. */
  readonly log: ExistingLog | undefined;
}

/** Throws the same single-line Error, without the password, with which a start would fail. */
export function findPostgresLog(url: string): Promise<ExistingDatabase> {
  return onFirstConnection(url, async (client) => {
    const server = await requireServer(client);
    const { rows } = await client.query("SELECT current_setting('synchronous_standby_names') <> '' AS has_standby");
    const exists = await logExists(client);
    return {
      detail: `${describeDatabase(url)} is ${server} and accepts writes`,
      hasSynchronousStandby: rows[0]?.has_standby === true,
      log: exists ? await readExisting(client, url) : undefined,
    };
  });
}

async function readExisting(client: Client, url: string): Promise<ExistingLog> {
  const log = await readExistingLog(runnerOn(client), {
    isMigrationDue: await isMigrationDue(client),
    lastAt: await readLastAt(client),
    now: await readNow(client),
    async withTree(work) {
      // Otherwise an error of `work` would be reported as a connection error.
      const [proof] = await onFirstConnection(url, (own) => Promise.allSettled([work(treeOn(own, log.logId))]));
      if (proof.status === 'rejected') throw proof.reason;
    },
  });
  return log;
}

function treeOn(client: Client, logId: string): PublishedTree {
  const runner = runnerOn(client);
  return new PostgresPublishedTree({ logId, sql: runner, commits: runner, damagedStreams: new DamagedStreams() });
}
