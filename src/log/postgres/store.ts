// A store in PostgreSQL, which any number of nodes share.
import type { Millis } from '../../vocabulary/values.ts';
import { DamagedStreams, type StreamDamaged } from '../damage.ts';
import { SignatureFilter } from '../signature-filter.ts';
import { SqlCallbacks } from '../sql/callbacks.ts';
import { Lists } from '../sql/lists.ts';
import { lastNumber } from '../sql/withheld-lines.ts';
import type { Store } from '../store.ts';
import { Connections, onFirstConnection, type PoolOptions, RETRY_WINDOW_MS, runnerOn } from './connections.ts';
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

/** Connections for places, checkpoints, snapshots and repeated requests, whose commits may wait for a standby. */
const COMMITS_MAX = 4;
/** One connection, so that no second claim is sent while the server is executing one. */
const LEASES_MAX = 1;

export interface PostgresStoreOptions {
  /** `postgres://…`, with several hosts separated by commas. */
  readonly url: string;
  /** Connections for reads. Up to seven more are used for moves, wake-ups, leases and other commits. */
  readonly connectionsMax: number;
  /** The lowest id of a new chamber, the same for all nodes; 1 by default. */
  readonly chamberIdMin?: number;
  /** Called once for each damaged stream. */
  readonly onDamage?: (damage: StreamDamaged) => void;
  /** Called with the problem when a database of DATABASE_URL can't be used as this log, and with undefined when it can. */
  readonly onChecked?: (problem: Error | undefined) => void;
  /** Called when the database's clock has drifted from this machine's. */
  readonly onDrift?: (driftMillis: Millis) => void;
  /** A monotonic clock, which advances the time between two readings; performance.now() by default. */
  readonly elapsed?: () => Millis;
}

/** Opens the store, and creates its schema in an empty database. Throws a single-line Error without the password. */
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
  /** The database's clock, by which all nodes decide. */
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
  const damagedStreams = new DamagedStreams(options.onDamage);
  let checkTree: Parameters<PostgresNodes['checkConnections']>[0] = async () => {};
  const clock = new DatabaseClock({ run: (work) => connections.run(work), onDrift, elapsed });
  const checked: PoolOptions = {
    check: async (client) => {
      await requireSameLog(client, logId);
      // The connection may lead to a different server, with a different clock.
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
  const commits = new Connections(url, COMMITS_MAX, { ...checked, responseTimeoutMillis: RETRY_WINDOW_MS });
  const leases = new Connections(url, LEASES_MAX, { ...checked, responseTimeoutMillis: RETRY_WINDOW_MS });
  const pools = [connections, writes.connections, commits, leases];
  const tree = new PostgresPublishedTree({ logId, sql: connections, commits, damagedStreams });
  const nodes = new PostgresNodes({
    logId,
    checkConnections: (check) => {
      checkTree = check;
    },
    connections,
    leases,
    pools,
    onWithheld: () => withholding.checkSoon(),
    // Uses the connections for reads, so that it delays no move.
    heads: async (streams) => {
      const asked = { streams, signatureKeys: [] };
      return (await connections.run((client) => lookUp(client, asked, damagedStreams))).heads;
    },
  });
  const log = new PostgresEventLog({
    ...{ logId, sql: connections, commits, writes, damagedStreams, nodes, clock },
    seen: new SignatureFilter(0),
    chamberIdMin: options.chamberIdMin ?? 1,
    onOutdated: () => withholding.check(),
  });
  const withholding = new PostgresWithholding({
    ...{ logId, sql: connections, log, damagedStreams, commits, through },
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
