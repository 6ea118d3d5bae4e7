// Makes and changes the keys with which a service signs receipts and checkpoints.
import { type Config, readConfig, VARIABLES } from '../config.ts';
import { createKeyFile, readKeyFile, rotateKeyFile } from '../keys/key-file.ts';
import { instantOf, type Millis } from '../vocabulary/values.ts';
import type { CommandSpec } from './command.ts';
import { CommandError, printMembers } from './output.ts';
import { isRegularFile } from './write-whole.ts';

/** Chambers are over by then, so that few receipts are signed by a key that their chamber did not pin. */
const OLD_KEYS_DAYS = 90;
const DAY_MS = 86_400_000;

export const keyCommands: readonly CommandSpec[] = [
  {
    name: 'admin new-keys',
    summary: 'Makes the file of the keys that sign receipts and checkpoints, or adds new keys to it',
    options: {
      '--file <file>': 'the key file (default: SERVICE_KEY_FILE)',
      '--old-until <time>': `when earlier keys end (default: in ${OLD_KEYS_DAYS} days; now, if one has leaked)`,
    },
    examples: ['admin new-keys', 'admin new-keys --file=/etc/chambers/keys.json --old-until=now'],
    run: async ({ options: { file: named, 'old-until': oldUntil }, isJson }) => {
      const now = Date.now();
      const { SERVICE_KEY_FILE } = process.env;
      const file = named ?? SERVICE_KEY_FILE;
      if (!file) throw new CommandError('usage', 'no file to write: set SERVICE_KEY_FILE or use --file');
      const isAdded = await isRegularFile(file);
      if (isAdded) await requireSameLog(file);
      const keys = isAdded
        ? rotateKeyFile(file, { now, until: toInstant(oldUntil, now) })
        : createKeyFile(file, await openLogId(readConfig({ ...process.env, SERVICE_KEY_FILE: file })), now);
      printMembers(isJson, { file, logId: keys.logId, added: isAdded, ...keys.pins(now) });
    },
  },
];

function toInstant(text: string | undefined, now: Millis): Millis {
  if (text === undefined) return now + OLD_KEYS_DAYS * DAY_MS;
  const instant = text === 'now' ? now : instantOf(text);
  if (instant >= now) return instant;
  throw new CommandError('usage', `--old-until: “${text}” is not now or a time in the future`);
}

/** Keys are added to those of the database's log, also while the service runs. A database on a server names its log to the service alone. */
async function requireSameLog(file: string): Promise<void> {
  const { readMeta } = await import('../log/sqlite/meta.ts');
  const { readLog } = await import('../log/sqlite/reader.ts');
  const { DATABASE_URL, DATABASE_PATH } = process.env;
  const path = DATABASE_PATH || VARIABLES.DATABASE_PATH.fallback;
  const logId = DATABASE_URL ? undefined : readLog(path, (db) => readMeta(db, 'log_id'));
  if (logId !== undefined) readKeyFile(file, logId);
}

/** The log id of the configured database, which is made where there is none; no service may run on it. */
async function openLogId({ DATABASE_URL: url, DATABASE_PATH: path }: Config): Promise<string> {
  const { openSqliteStore } = await import('../log/sqlite/store.ts');
  const { openPostgresStore } = await import('../log/postgres/store.ts');
  const store = url === undefined ? openSqliteStore(path) : await openPostgresStore({ url, connectionsMax: 1 });
  await store.close();
  return store.log.logId;
}
