// Creates and rotates the keys with which a service signs receipts and checkpoints.
import { type Config, readConfig } from '../config.ts';
import { createKeyFile, readKeyFile, rotateKeyFile } from '../keys/key-file.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import { SERVICE_KEYS, toKeyIds } from '../log/log-id.ts';
import { findLog } from '../service/checks/database.ts';
import { readKeys, recordKeys, requireRecorded } from '../service/key-files.ts';
import { instantOf, type Millis } from '../vocabulary/values.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, printMembers } from './output.ts';

/** Long enough for open chambers to end, so that few receipts are signed with a key that their chamber did not pin. */
const OLD_KEYS_DAYS = 90;
const DAY_MS = 86_400_000;

export const keyCommands: readonly CommandSpec[] = [
  {
    name: 'admin new-keys',
    summary: 'Creates the file of keys that sign receipts and checkpoints, or adds new keys to the file',
    options: {
      '--file <file>': 'the key file (default: SERVICE_KEY_FILE)',
      '--old-until <time>': `when earlier keys expire (default: in ${OLD_KEYS_DAYS} days; use "now" if a key has leaked)`,
      '--lost': "replace the log's keys after their file was lost, while no service runs on the log",
    },
    examples: ['admin new-keys', 'admin new-keys --file=/etc/chambers/keys.json --old-until=now'],
    run: newKeys,
  },
];

async function newKeys({ options, isJson }: Input): Promise<void> {
  const now = Date.now();
  const { SERVICE_KEY_FILE } = process.env;
  const file = options['file'] ?? SERVICE_KEY_FILE;
  if (!file) throw new CommandError('usage', 'no file to write: set SERVICE_KEY_FILE or use --file');
  const config = readConfig({ ...process.env, SERVICE_KEY_FILE: file });
  const isLost = options['lost'] !== undefined;
  // Keys may be added to the file while a service is running.
  const { log } = await findLog(config, { isInUse: true });
  const before = isLost ? log && readKeyFile(file, log.logId) : readKeys(config, log);
  const until = toInstant(options['old-until'], now);
  const make = (logId: string) =>
    before === undefined ? createKeyFile(file, logId, now) : rotateKeyFile(file, { now, until });
  // The service records added keys when it next starts.
  const keys =
    before === undefined || isLost ? await makeAndRecord(config, { file, isLost, make }) : await make(before.logId);
  printMembers(isJson, { file, logId: keys.logId, added: before !== undefined, ...keys.pins(now) });
}

interface NewKeys {
  readonly file: string;
  readonly isLost: boolean;
  readonly make: (logId: string) => Promise<ServiceKeys>;
}

/** Creates the log if there is none. No service may run on the database if it is a file. */
async function makeAndRecord(
  { DATABASE_URL: url, DATABASE_PATH: path }: Config,
  { file, isLost, make }: NewKeys,
): Promise<ServiceKeys> {
  const { openSqliteStore } = await import('../log/sqlite/store.ts');
  const { openPostgresStore } = await import('../log/postgres/store.ts');
  const store = url === undefined ? openSqliteStore(path) : await openPostgresStore({ url, connectionsMax: 1 });
  try {
    const keys = await make(store.log.logId);
    const recorded = await recordKeys(store.meta, keys, isLost ? await store.meta.recall(SERVICE_KEYS) : undefined);
    requireRecorded(keys, toKeyIds(recorded), file);
    return keys;
  } finally {
    await store.close();
  }
}

function toInstant(text: string | undefined, now: Millis): Millis {
  if (text === undefined) return now + OLD_KEYS_DAYS * DAY_MS;
  const instant = text === 'now' ? now : instantOf(text);
  if (instant >= now) return instant;
  throw new CommandError('usage', `--old-until: “${text}” is neither now nor a time in the future`);
}
