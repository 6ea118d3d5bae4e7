// A store in PostgreSQL, which any number of nodes share.
import type { Millis } from '../../vocabulary/values.ts';
import { Damages, type StreamDamaged } from '../damage.ts';
import { SignatureFilter } from '../signature-filter.ts';
import { Lists } from '../sql/lists.ts';
import type { Store } from '../store.ts';
import { readLastAt } from './clock.ts';
import { type ConnectionOptions, Connections, connectFirst, PATIENCE_MS } from './connections.ts';
import { DatabaseClock } from './database-clock.ts';
import { PostgresEventLog } from './event-log.ts';
import { requireSameLog } from './log-identity.ts';
import { lookUp } from './look-up.ts';
import { PostgresMeta } from './meta.ts';
import { PostgresNodes } from './nodes.ts';
import { PostgresPublishedTree } from './published-tree.ts';
import { createIfEmpty, readMeta } from './schema.ts';
import { Writes } from './writes.ts';

/** For places, checkpoints, snapshots and repeated requests, which may wait for a standby. */
const COMMITS_MAX = 4;
/** No second claim is sent while one is unresolved. */
const LEASES_MAX = 1;

export interface PostgresStoreOptions {
  /** `postgres://…`, with several hosts separated by commas. */
  readonly url: string;
  /** Reads have these; up to eight more serve moves, wake-ups, leases and what commits beside moves. */
  readonly connectionsMax: number;
  /** The lowest id of a new chamber, the same for all nodes; 1 by default. */
  readonly chamberIdMin?: number;
  /** Called once for each stream in which damage is met. */
  readonly onDamage?: (damage: StreamDamaged) => void;
  /** Called when a database that DATABASE_URL leads to can't be used as this log, and with undefined when one can. */
  readonly onChecked?: (problem: Error | undefined) => void;
  /** Called when the database's clock has drifted from this machine's. */
  readonly onDrift?: (driftMillis: Millis) => void;
  /** The time that has passed, by which the database's clock goes on between two readings; performance.now() by default. */
  readonly elapsed?: () => Millis;
}

/** Opens the store, and creates its schema in an empty database. Throws an Error of one line, without the password. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const first = new Connections(options.url, 1);
  const opened = await connectFirst(first, options.url, async (client): Promise<Opened> => {
    await createIfEmpty(client);
    const logId = (await readMeta(client, 'log_id')) ?? '';
    await requireSameLog(client, logId);
    return { logId, lastAt: await readLastAt(client) };
  });
  await first.close();
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
}

interface Opened {
  readonly logId: string;
  readonly lastAt: Millis;
}

function compose(options: PostgresStoreOptions, { logId, lastAt }: Opened): PostgresStore {
  const damages = new Damages(options.onDamage);
  let checkTree: Parameters<PostgresNodes['checkConnections']>[0] = async () => {};
  const { onDrift, elapsed } = options;
  const clock = new DatabaseClock({ run: (work) => connections.run(work), onDrift, elapsed });
  const checked: ConnectionOptions = {
    check: async (client) => {
      await requireSameLog(client, logId);
      // The server may be another one, with another clock.
      await clock.measureOn(client);
      await checkTree(tree.on(client));
    },
    onOtherLog: () => {
      for (const pool of pools) pool.recheck();
    },
    ...(options.onChecked && { onChecked: options.onChecked }),
  };
  const connections = new Connections(options.url, options.connectionsMax, checked);
  const writes = new Writes(options.url, checked);
  const [commits, leases] = [COMMITS_MAX, LEASES_MAX].map(
    (max) => new Connections(options.url, max, { ...checked, silenceMillis: PATIENCE_MS }),
  ) as [Connections, Connections];
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
    // It runs apart from the moves, which it must not delay.
    heads: async (streams) => {
      const asked = { streams, signatureKeys: [] };
      return (await connections.run((client) => lookUp(client, asked, damages))).heads;
    },
  });
  return {
    clock,
    nodes,
    log: new PostgresEventLog({
      ...{ logId, sql: connections, commits, writes, damages, nodes, clock },
      seen: new SignatureFilter(0),
      chamberIdMin: options.chamberIdMin ?? 1,
    }),
    lists: new Lists(connections),
    tree,
    meta: new PostgresMeta({ logId, sql: connections, writes, lastAt, clock }),
    async close() {
      clock.close();
      nodes.close();
      await Promise.all(pools.map((pool) => pool.close()));
    },
  };
}
