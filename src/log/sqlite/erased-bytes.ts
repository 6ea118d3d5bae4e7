// Deleted bytes stay in their pages and in the -wal: VACUUM rewrites every page, and the checkpoint empties the -wal.
import type { Database } from 'better-sqlite3';

/** Returns false if another program reads former pages: their bytes are still in the -wal. */
export function eraseDeletedBytes(db: Database): boolean {
  db.exec('VACUUM');
  return truncateWal(db);
}

export function truncateWal(db: Database): boolean {
  const [checkpoint] = db.pragma('wal_checkpoint(TRUNCATE)') as readonly { readonly busy: number }[];
  return checkpoint?.busy === 0;
}
