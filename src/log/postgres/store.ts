// A store in PostgreSQL, which any number of nodes share.
import type { Millis } from '../../vocabulary/values.ts';
import { Damages, type StreamDamaged } from '../damage.ts';
import { SignatureFilter } from '../signature-filter.ts';
import { SqlCallbacks } from '../sql/callbacks.ts';
import { Lists } from '../sql/lists.ts';
import { lastNumber } from '../sql/withheld-lines.ts';
import type { Store } from '../store.ts';
import { Connections, onFirstConnection, PATIENCE_MS, type PoolOptions, runnerOn } from './connections.ts';
import { DatabaseClock } from './database-clock.ts';
import { PostgresEventLog } from './event-log.ts';
import { lookUp } from './look-up.ts';
import { PostgresMeta, readLastAt } from './meta.ts';
import { PostgresNodes } from './nodes.ts';
import { PostgresPublishedTree } from './published-tree.ts';
import { readMeta } from './requirements.ts';
import { createIfEmpty, requireSameLog } from './schema.ts';
import { prepared } from './session.ts';
import { PostgresWithholding } from './withholding.ts';
import { Writes } from './writes.ts';

/** For places, checkpoints, snapshots and repeated requests, whose commits may wait for a standby. */
const COMMITS_MAX = 4;
/** No second claim is sent while the server is at work on one. */
const LEASES_MAX = 1;

export interface PostgresStoreOptions {
  /** `postgres://…`, with several hosts separated by commas. */
  readonly url: string;
  /** For reads; up to seven more are for moves, wake-ups, leases and other commits. */
  readonly connectionsMax: number;
  /** The lowest id of a new chamber, the same for all nodes; 1 by default. */
  readonly chamberIdMin?: number;
  /** Called once for each damaged stream. */
  readonly onDamage?: (damage: StreamDamaged) => void;
  /** Called when a database that DATABASE_URL leads to can't be used as this log, and with undefined when one can. */
  readonly onChecked?: (problem: Error | undefined) => void;
  /** Called when the database's clock has drifted from this machine's. */
  readonly onDrift?: (driftMillis: Millis) => void;
  /** The time that has passed, which advances the clock between two readings; performance.now() by default. */
  readonly elapsed?: () => Millis;
}

/** Opens the store, and creates its schema in an empty database. Throws an Error of one line, without the password. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const opened = await onFirstConnection(options.url, async (client): Promise<Opened> => {
    await createIfEmpty(client);
    const logId = (await readMeta(client, 'log_id')) ?? '';
    await requireSameLog(client, logId);
    return { logId, lastAt: await readLastAt(client), through: await lastNumber(runnerOn(client)) };
  });
  const store = compose(options, opened);
  try {
    await store.clock.start();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

export interface PostgresStore extends Store {
  /** The database's: all nodes decide by one clock. */
  readonly clock: DatabaseClock;
  readonly nodes: PostgresNodes;
  readonly withholding: PostgresWithholding;
}

interface Opened {
  readonly logId: string;
  readonly lastAt: Millis;
  /** The last withholding. */
  readonly through: number;
}

function compose(options: PostgresStoreOptions, { logId, lastAt, through }: Opened): PostgresStore {
  const { url, onChecked = () => {}, onDrift, elapsed } = options;
  const damages = new Damages(options.onDamage);
  let checkTree: Parameters<PostgresNodes['checkConnections']>[0] = async () => {};
  const clock = new DatabaseClock({ run: (work) => connections.run(work), onDrift, elapsed });
  const checked: PoolOptions = {
    check: async (client) => {
      await requireSameLog(client, logId);
      // The server may be another one, with another clock.
      await clock.measureOn(client);
      await checkTree(tree.on(client));
    },
    onOtherLog: () => {
      for (const pool of pools) pool.recheck();
    },
    onChecked,
  };
  const connections = new Connections(url, options.connectionsMax, checked);
  const writes = new Writes(url, checked);
  const commits = new Connections(url, COMMITS_MAX, { ...checked, silenceMillis: PATIENCE_MS });
  const leases = new Connections(url, LEASES_MAX, { ...checked, silenceMillis: PATIENCE_MS });
  const pools = [connections, writes.connections, commits, leases];
  const tree = new PostgresPublishedTree({ logId, sql: connections, commits, damages });
  const nodes = new PostgresNodes({
    logId,
    checkConnections: (check) => {
      checkTree = check;
    },
    connections,
    leases,
    pools,
    onWithheld: () => withholding.checkSoon(),
    // On the connections for reads, so that it delays no move.
    heads: async (streams) => {
      const asked = { streams, signatureKeys: [] };
      return (await connections.run((client) => lookUp(client, asked, damages))).heads;
    },
  });
  const log = new PostgresEventLog({
    ...{ logId, sql: connections, commits, writes, damages, nodes, clock },
    seen: new SignatureFilter(0),
    chamberIdMin: options.chamberIdMin ?? 1,
    onOutdated: () => withholding.check(),
  });
  const withholding = new PostgresWithholding({
    ...{ logId, sql: connections, log, damages, commits, through },
    onWritten: () => nodes.announceWithheld(),
  });
  return {
    clock,
    nodes,
    log,
    withholding,
    lists: new Lists(connections),
    callbacks: new SqlCallbacks(connections, (text, values) =>
      commits.run(async (client) => (await client.query(prepared(text, values))).rowCount ?? 0),
    ),
    tree,
    meta: new PostgresMeta({ logId, sql: connections, writes, lastAt, clock }),
    async close() {
      clock.close();
      nodes.close();
      withholding.close();
      await Promise.all(pools.map((pool) => pool.close()));
    },
  };
}
