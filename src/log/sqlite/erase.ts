// Removes an agent's personal data from a database while no service runs on it: the rows, and their remaining bytes in the file and its
// -wal. The log itself contains no personal data and does not change.
import { openDatabaseFile, reasonOf } from './database-file.ts';
import { openReader } from './reader.ts';
import { eraseDeletedBytes } from './transactions.ts';

export interface EraseSummary {
  readonly did: string;
  readonly emailAddresses: number;
  readonly callbacks: number;
  /** Hashes of signatures that cover an e-mail address or a callback. Without them, a repeated request is rejected only for its age. */
  readonly signatures: number;
  /** Lines of releases before schema 4 that remain in the log. Their digest and signature cover an e-mail address. */
  readonly linesKept: number;
}

/** Throws a single-line Error if the agent is unknown or another program uses the file. May be repeated at any time. */
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
        callbacks: erase('callbacks WHERE did = ?'),
        signatures:
          erase('registrations WHERE covers_email = 1 AND did = ?') + erase('callback_signatures WHERE did = ?'),
        linesKept,
      }))
      .immediate();
    if (!eraseDeletedBytes(db)) throw new Error('another program is reading it: the bytes are still in the -wal');
    return summary;
  } catch (error) {
    throw new Error(`cannot erase ${did} from ${path}: ${reasonOf(error)}; run it again`, { cause: error });
  } finally {
    file.close();
  }
}

/** Returns `linesKept`. Uses a reader, because opening for writing would create a missing file. */
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
