// Removes an agent's personal data from a database while no service runs on it: the rows, and the bytes that they leave
// behind in the file and its -wal. The log itself holds none of it, and stays as it is.
import { openDatabaseFile, reasonOf } from './database-file.ts';
import { openReader } from './reader.ts';

export interface EraseSummary {
  readonly did: string;
  readonly emailAddresses: number;
  /** Hashes of signatures that cover an e-mail address: a retry of such a registration is from now on judged by its age. */
  readonly signatures: number;
  /** Lines of releases before schema 4, whose digest and signature cover an e-mail address. The log keeps them. */
  readonly linesKept: number;
}

/** Throws an Error of one line if the file holds no such agent or another program uses it. It may be repeated at any time. */
export function eraseAgent(path: string, did: string): EraseSummary {
  const linesKept = requireAgent(path, did);
  const file = openDatabaseFile(path);
  try {
    const { db } = file;
    const erase = (rows: string) => db.prepare(`DELETE FROM ${rows}`).run(did).changes;
    const summary = db
      .transaction(() => ({
        did,
        emailAddresses: erase('contacts WHERE did = ?'),
        signatures: erase('registrations WHERE covers_email = 1 AND did = ?'),
        linesKept,
      }))
      .immediate();
    // Deleted bytes stay in their pages and in the -wal: VACUUM writes every page again, the checkpoint empties the -wal.
    db.exec('VACUUM');
    const [checkpoint] = db.pragma('wal_checkpoint(TRUNCATE)') as readonly { readonly busy: number }[];
    if (checkpoint?.busy !== 0) throw new Error('another program is reading it: the bytes are still in the -wal');
    return summary;
  } catch (error) {
    throw new Error(`cannot erase ${did} from ${path}: ${reasonOf(error)}; run it again`, { cause: error });
  } finally {
    file.close();
  }
}

/** The reader makes no file that is missing. */
function requireAgent(path: string, did: string): number {
  const reader = openReader(path);
  try {
    const registrations = reader.prepare<[string], string>(
      `SELECT CASE WHEN json_type(line, '$.request') = 'object' THEN json_type(line, '$.request.body') END FROM events
       WHERE account = ? AND json_extract(line, '$.type') = 'agent.registered'`,
    );
    const bodies = registrations.pluck().all(did);
    if (bodies.length === 0) throw new Error(`agent ${did} not found in ${path}`);
    return bodies.filter((body) => body === 'null').length;
  } finally {
    reader.close();
  }
}
