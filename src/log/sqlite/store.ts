// A store in one SQLite file: WAL, synchronous=FULL, one process that writes.

import { LOG_ID } from '../../vocabulary/values.ts';
import { Damages, type LogCorruption, type StreamDamaged } from '../damage.ts';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import type { Store } from '../store.ts';
import { Access } from './access.ts';
import { ChamberPhases } from './chamber-phases.ts';
import { cannotOpen, type DatabaseFile, openDatabaseFile } from './database-file.ts';
import { EventIndex } from './event-index.ts';
import { SqliteEventLog } from './event-log.ts';
import { SqliteLists } from './lists.ts';
import { Memberships } from './memberships.ts';
import { SqliteMeta } from './meta.ts';
import type { OnMigration } from './migration.ts';
import { SqlitePublishedTree } from './published-tree.ts';
import { readMeta } from './reader.ts';

export interface SqliteStoreOptions {
  /** The lowest id of a new chamber; 1 by default. */
  readonly chamberIdMin?: number;
  /** Called before any method rejects with the error: the process must stop. */
  readonly onCorruption?: (error: LogCorruption) => void;
  /** Called once for each stream in which damage is met. */
  readonly onDamage?: (damage: StreamDamaged) => void;
  /** Called again and again while a file of an earlier release is migrated. */
  readonly onMigration?: OnMigration;
}

/** Opens or creates the store in `path`, or in memory for ':memory:'. Throws an Error of one line. */
export function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  const file = openDatabaseFile(path, options.onMigration);
  try {
    return compose(file, options);
  } catch (error) {
    file.close();
    throw cannotOpen(path, error);
  }
}

function compose(file: DatabaseFile, { onCorruption = () => {}, onDamage, chamberIdMin }: SqliteStoreOptions): Store {
  const access = new Access(file, onCorruption);
  const { db } = file;
  const index = new EventIndex(db, chamberIdMin);
  const memberships = new Memberships(db, index);
  const phases = new ChamberPhases(db);
  const meta = new SqliteMeta(access, phases);
  const logId = readMeta(db, 'log_id') ?? '';
  if (!LOG_ID.test(logId)) throw new Error('the log has no id of 32 hex digits: restore a backup');
  requireNotMoved(readMeta(db, MOVED_TO));
  const damages = new Damages(onDamage);
  return {
    log: new SqliteEventLog(logId, { access, damages, index, memberships, phases }),
    tree: new SqlitePublishedTree({ logId, access, damages }),
    lists: new SqliteLists(access, memberships, phases),
    meta,
    nodes: undefined,
    async close() {
      meta.close();
      file.close();
    },
  };
}
