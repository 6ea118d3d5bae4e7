// Broken deployments: doctor and start report the same sentence and exit code, and change nothing.
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createKeyFile } from '../../src/keys/key-file.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { servedChain } from '../kit/empty-chain.ts';
import { serve } from '../kit/serve.ts';
import { type Environment, expectSame } from '../kit/start-and-doctor.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';

const PRODUCTION = { NODE_ENV: 'production', PUBLIC_URL: 'https://forum.example.org' };
const RELAYER = {
  CHAIN: '',
  CHAMBER_REGISTRY_ADDRESS: `0x${'11'.repeat(20)}`,
  IDEA_FACTORY_ADDRESS: `0x${'22'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'33'.repeat(32)}`,
};

async function takenPort(): Promise<string> {
  return new URL(await serve((_request, response) => response.writeHead(404).end())).port;
}

const fileIn = (name: string, text = '') => {
  const file = join(temporaryFolder(), name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
};

async function log(change: (db: Database.Database, path: string) => void = () => {}): Promise<string> {
  const path = temporaryDatabase();
  await openSqliteStore(path).close();
  const db = new Database(path);
  change(db, path);
  db.close();
  return path;
}

async function logAndKeys(logId?: string) {
  const DATABASE_PATH = temporaryDatabase();
  const store = openSqliteStore(DATABASE_PATH);
  await store.close();
  const SERVICE_KEY_FILE = join(dirname(DATABASE_PATH), 'keys.json');
  await createKeyFile(SERVICE_KEY_FILE, logId ?? store.log.logId, Date.now());
  return { DATABASE_PATH, SERVICE_KEY_FILE };
}

/** A title, the settings, the exit code and a part of the sentence. */
const SET_UPS: readonly (readonly [string, () => Environment | Promise<Environment>, number, string | RegExp])[] = [
  ['an invalid value', () => ({ PORT: 'http' }), 78, 'PORT: must be an integer'],
  [
    'the same port for service and metrics',
    () => ({ PORT: '9464', METRICS_PORT: '9464' }),
    78,
    'METRICS_PORT: must be a port other than PORT',
  ],
  ['a taken port', async () => ({ PORT: await takenPort() }), 1, /PORT: cannot listen on .* another program/],
  [
    'a taken metrics port',
    async () => ({ METRICS_PORT: await takenPort() }),
    1,
    /METRICS_PORT: cannot listen on .* another program/,
  ],
  ['a foreign address', () => ({ HOST: '203.0.113.1' }), 1, /HOST: cannot listen on .* not an address of this machine/],
  ['a misspelt variable', () => ({ ...PRODUCTION, CHAIN: '', RPC_URI: 'http://x' }), 78, 'did you mean RPC_URL?'],
  ['production without an address', () => ({ NODE_ENV: 'production' }), 78, 'PUBLIC_URL: is needed'],
  [
    'two stores',
    () => ({ DATABASE_PATH: 'x.db', DATABASE_URL: 'postgres://h/d' }),
    78,
    'DATABASE_URL: cannot be combined with DATABASE_PATH',
  ],
  ['a missing ban list', () => ({ BAN_LIST_FILE: '/nowhere/list' }), 78, 'BAN_LIST_FILE: cannot read the access list'],
  ['an invalid witness policy', () => ({ WITNESS_POLICY_FILE: fileIn('policy', 'x') }), 78, 'WITNESS_POLICY_FILE: '],
  [
    'a missing contracts file',
    () => ({ ...RELAYER, RPC_URL: 'http://127.0.0.1:9', CONTRACTS: 'quorum', CONTRACTS_FILE: '/nowhere/q.json' }),
    78,
    'CONTRACTS_FILE: /nowhere/q.json not found',
  ],
  ['a missing folder', () => ({ DATABASE_PATH: '/nowhere/chambers.db' }), 1, 'the folder /nowhere does not exist'],
  [
    'a log that another process has open',
    () => {
      const DATABASE_PATH = temporaryDatabase();
      const holder = openSqliteStore(DATABASE_PATH);
      atEnd(() => holder.close());
      return { DATABASE_PATH };
    },
    1,
    /DATABASE_PATH: .*another process is using it/,
  ],
  ['a file that is not a database', () => ({ DATABASE_PATH: fileIn('a.db', 'x'.repeat(4096)) }), 1, 'not a database'],
  [
    'a file of another program',
    async () => ({ DATABASE_PATH: await log((db) => db.exec('DROP TABLE events')) }),
    1,
    'the file is a database of another program',
  ],
  [
    'a log of a newer version',
    async () => ({ DATABASE_PATH: await log((db) => db.pragma('user_version = 99')) }),
    1,
    'the file has schema 99, newer than',
  ],
  [
    'a log that has moved',
    async () => ({ DATABASE_PATH: await log((db) => db.exec("INSERT INTO meta VALUES ('moved_to', 'there')")) }),
    1,
    'its log has moved to there',
  ],
  [
    'no keys in production',
    async () => ({ ...PRODUCTION, DATABASE_PATH: await log(), SERVICE_KEY_FILE: '/nowhere/keys.json' }),
    78,
    'SERVICE_KEY_FILE: /nowhere/keys.json not found: run chambers admin new-keys once',
  ],
  ['the keys of another log', () => logAndKeys('ab'.repeat(16)), 78, /SERVICE_KEY_FILE: .* but this log is /],
  [
    'keys that only this node has',
    async () => {
      const settings = await logAndKeys();
      const db = new Database(settings.DATABASE_PATH);
      db.exec("INSERT INTO meta VALUES ('service_keys', 'one two')");
      db.close();
      return settings;
    },
    78,
    /SERVICE_KEY_FILE: .* lacks keys of the log \(one, two\): copy the key file of the node that has them/,
  ],
  [
    'keys of a lost log',
    async () => ({ ...(await logAndKeys()), DATABASE_PATH: temporaryDatabase() }),
    78,
    /SERVICE_KEY_FILE: .* but the database has no log/,
  ],
  [
    'keys that others may read',
    async () => {
      const settings = await logAndKeys();
      chmodSync(settings.SERVICE_KEY_FILE, 0o644);
      return settings;
    },
    78,
    /SERVICE_KEY_FILE: .* chmod 600/,
  ],
  [
    'a checkpoint signed by other keys',
    async () => {
      const settings = await logAndKeys();
      writeFileSync(`${settings.SERVICE_KEY_FILE}.checkpoint`, 'nonsense');
      return settings;
    },
    1,
    'is not a checkpoint signed by a key of this log',
  ],
  [
    'a chain other than the log’s',
    async () => ({
      ...RELAYER,
      RPC_URL: await servedChain(),
      CHAIN_ID: '31337',
      DATABASE_PATH: await log((db) => db.exec("INSERT INTO meta VALUES ('chain_id', '1')")),
    }),
    78,
    'CHAIN_ID: the database was first used with chain 1, not 31337',
  ],
  ['another chain', async () => ({ ...RELAYER, RPC_URL: await servedChain(), CHAIN_ID: '1' }), 1, 'CHAIN_ID: the RPC'],
  [
    'no contracts',
    async () => ({ ...RELAYER, RPC_URL: await servedChain() }),
    1,
    'CHAMBER_REGISTRY_ADDRESS: no contract',
  ],
  ['no server', async () => ({ DATABASE_URL: 'postgres://u:p@127.0.0.1:1/d' }), 1, /DATABASE_URL: .* ECONNREFUSED/],
];

describe('broken deployments', () => {
  it.each(SET_UPS)('doctor and start report the same error for %s', async (_title, make, exitCode, sentence) => {
    const path = await expectSame(await make(), exitCode, sentence);
    // The failed start created nothing.
    expect(readdirSync(dirname(path))).toEqual([]);
  });
});
