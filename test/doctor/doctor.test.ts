// `chambers doctor` finds faults before the service starts, and names the variable that fixes each of them.
import { chmodSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { examine } from '../../src/doctor/doctor.ts';
import { examineService } from '../../src/doctor/running-service.ts';
import { createKeyFile } from '../../src/keys/key-file.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { Finding } from '../../src/service/checks/finding.ts';
import { checkKeys } from '../../src/service/checks/keys.ts';
import { run } from '../cli/run.ts';
import { TestClock } from '../kit/clock.ts';
import { servedChain } from '../kit/empty-chain.ts';
import { run as runService } from '../kit/service.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { entry } from '../log/entries.ts';

const SOUND = { CHAIN: 'none', DATABASE_PATH: ':memory:' } as const;

/** Settings with a log and its key file. */
async function madeLog() {
  const path = temporaryDatabase();
  const { log, close } = openSqliteStore(path);
  await close();
  const file = join(dirname(path), 'keys.json');
  await createKeyFile(file, log.logId, Date.now());
  return { DATABASE_PATH: path, SERVICE_KEY_FILE: file };
}

async function complaints(env: Readonly<Record<string, string>>): Promise<readonly Finding[]> {
  return (await examine(env)).filter(({ level }) => level !== 'ok');
}

describe('doctor', () => {
  it('doctor finds no fault in a new service', async () => {
    expect(await complaints({ DATABASE_PATH: join(temporaryFolder(), 'chambers.db') })).toEqual([]);
  });

  it('doctor reports, like a start, that Anvil is not installed for the development chain', async () => {
    const { arch } = process;
    Object.defineProperty(process, 'arch', { value: 'mips' });
    try {
      const detail = expect.stringMatching(/^no Anvil is installed for \w+ mips: set RPC_URL/);
      const found = await complaints({ DATABASE_PATH: join(temporaryFolder(), 'chambers.db') });
      expect(found).toEqual([{ subject: 'chain', level: 'problem', variable: 'RPC_URL', detail, exitCode: 1 }]);
    } finally {
      Object.defineProperty(process, 'arch', { value: arch });
    }
  });

  it('doctor suggests corrections for misspelt variables and a misspelt production, but not for PostgreSQL’s variables', async () => {
    const { DATABASE_PATH } = await madeLog();
    const found = await complaints({
      ...{ CHAIN: 'none', DATABASE_PATH, NODE_ENV: 'productoin' },
      ...{
        CONFIRMATION: '3',
        chambers_id_min: '2',
        CHAMBERS_TRUSTED_PROXIES: '::1',
        EDITOR: 'vi',
        HOME: '/',
        POST: '1',
        PGHOST: '127.0.0.1',
      },
    });
    expect(found.map(({ level, variable, detail }) => [level, variable, detail])).toEqual([
      ['warning', 'CONFIRMATIONS', 'not set, but CONFIRMATION is: did you mean CONFIRMATIONS?'],
      ['warning', 'CHAMBER_ID_MIN', 'not set, but chambers_id_min is: did you mean CHAMBER_ID_MIN?'],
      ['warning', 'TRUSTED_PROXIES', 'not set, but CHAMBERS_TRUSTED_PROXIES is: did you mean TRUSTED_PROXIES?'],
      ['warning', 'NODE_ENV', 'productoin enables no strict checks: did you mean production?'],
    ]);
  });

  it('doctor shows the effective settings', async () => {
    const findings = await examine({ ...SOUND, TRUSTED_PROXIES: '10.0.0.0/8', FEE_MAX_GWEI: '30' });
    const shown = findings.filter(({ subject }) => subject === 'settings').map((each) => [each.variable, each.detail]);
    expect(Object.fromEntries(shown)).toMatchObject({
      ...{ NODE_ENV: 'development, listening on 127.0.0.1:8787', DATABASE_PATH: ':memory:' },
      ...{
        TRUSTED_PROXIES: '10.0.0.0/8',
        CONFIRMATIONS: '1 (default)',
        FEE_MAX_GWEI: '30',
        BAN_LIST_FILE: 'none (default)',
      },
    });
  });

  it('doctor names every wrong variable of a configuration', async () => {
    const findings = await complaints({ PORT: 'http', CONFIRMATIONS: '-1' });
    expect(findings.map(({ subject, level, variable }) => [subject, level, variable])).toEqual([
      ['configuration', 'problem', 'PORT'],
      ['configuration', 'problem', 'CONFIRMATIONS'],
    ]);
  });

  it.each([
    ['DEV_ALLOW_UNSIGNED', { DEV_ALLOW_UNSIGNED: 'true' }],
    ['NODE_ENV', { HOST: '0.0.0.0' }],
    ['CHAIN', { NODE_ENV: 'production', PUBLIC_URL: 'https://forum.example.org' }],
  ])('doctor warns of unsafe settings: %s', async (variable, env) => {
    const warning = { subject: 'flags', level: 'warning', variable, detail: expect.any(String), exitCode: 0 };
    expect(await complaints({ CHAIN: 'none', ...(await madeLog()), ...env })).toEqual([warning]);
  });

  it('doctor warns of an in-memory log in production', async () => {
    const production = { NODE_ENV: 'production', PUBLIC_URL: 'https://forum.example.org' };
    const found = await complaints({ ...SOUND, ...production });
    expect(found.map(({ level, variable }) => [level, variable])).toEqual([
      ['warning', 'CHAIN'],
      ['warning', 'DATABASE_PATH'],
    ]);
  });

  it.each([
    ['beneath a file', (file: string) => join(file, 'chambers.db')],
    ['in no folder', (file: string) => join(`${file}.missing`, 'chambers.db')],
    ['that is a folder', (file: string) => dirname(file)],
  ])('doctor finds a database %s', async (_where, path) => {
    const file = temporaryDatabase();
    await openSqliteStore(file).close();
    const [finding] = await complaints({ CHAIN: 'none', DATABASE_PATH: path(file) });
    expect(finding).toMatchObject({ subject: 'disk', level: 'problem', variable: 'DATABASE_PATH' });
  });

  it.each(['ALLOW_LIST_FILE', 'BAN_LIST_FILE', 'WITNESS_POLICY_FILE'])(
    'doctor finds a file that a start could not read: %s',
    async (variable) => {
      const detail = expect.stringContaining('/nowhere/list');
      expect(await complaints({ ...SOUND, [variable]: '/nowhere/list' })).toContainEqual({
        ...{ subject: 'configuration', level: 'problem' },
        ...{ variable, detail, exitCode: 78 },
      });
    },
  );

  it('doctor finds errors in the list of texts to withhold, which do not prevent a start', async () => {
    const list = join(temporaryFolder(), 'withhold');
    const [problem, about] = [{ level: 'problem', variable: 'WITHHOLD_FILE', exitCode: 0 }, { WITHHOLD_FILE: list }];
    const missing = `cannot read the list of texts to withhold ${list}: ENOENT`;
    expect(await complaints({ ...SOUND, ...about })).toMatchObject([
      { ...problem, detail: expect.stringContaining(missing) },
    ]);
    writeFileSync(list, '1:2 law\n1:3 rude\n1:2 law\n');
    expect(await complaints({ ...SOUND, ...about })).toMatchObject([
      { ...problem, detail: `${list}, line 2: the reason must be one of personal-data, secret, abuse, law` },
      { ...problem, detail: `${list}, line 3: 1:2 is already on line 1, which counts` },
    ]);
  });

  it('doctor finds a log that has moved', async () => {
    const path = temporaryDatabase();
    await openSqliteStore(path).close();
    const sound = { CHAIN: 'none', DATABASE_PATH: path };
    expect(await complaints(sound)).toEqual([]);
    const target = temporaryDatabase();
    expect((await run(['copy', path, target])).exitCode).toBe(0);
    const detail = expect.stringContaining(`its log has moved to ${target}`);
    expect(await complaints(sound)).toEqual([
      { subject: 'disk', level: 'problem', variable: 'DATABASE_PATH', detail, exitCode: 1 },
    ]);
  });

  it('doctor finds a key file that is missing in production, too open, or of another log', async () => {
    const path = temporaryDatabase();
    await openSqliteStore(path).close();
    const file = join(dirname(path), 'keys.json');
    const env = { CHAIN: 'none', DATABASE_PATH: path, SERVICE_KEY_FILE: file };
    const keysOf = async (more = {}) => (await examine({ ...env, ...more })).find(({ subject }) => subject === 'keys');
    const production = { NODE_ENV: 'production', PUBLIC_URL: 'https://forum.example.org' };
    expect(await keysOf()).toMatchObject({ level: 'ok' });
    expect(await keysOf(production)).toMatchObject({ level: 'problem', variable: 'SERVICE_KEY_FILE' });
    await createKeyFile(file, 'ab'.repeat(16), Date.now());
    expect(await keysOf()).toMatchObject({ level: 'problem', detail: expect.stringContaining('this log is') });
    chmodSync(file, 0o644);
    expect(await keysOf()).toMatchObject({ level: 'problem', detail: expect.stringContaining('chmod 600') });
  });

  it('doctor accepts the keys of a log that another node created after the first check', async () => {
    const config = readConfig({ CHAIN: 'none', ...(await madeLog()) });
    const before = { env: {}, config, time: Date.now, isRunning: false, log: undefined, chain: undefined };
    const found = await checkKeys({ ...before, isLogReadable: true });
    expect(found).toMatchObject([{ level: 'ok', detail: expect.stringContaining('holds the keys of log') }]);
  });

  it('doctor finds a clock that is behind the log', async () => {
    const path = temporaryDatabase();
    const store = openSqliteStore(path);
    const ts = new Date(Date.now() + 3_600_000).toISOString();
    await store.log.append({ entries: [entry(1, 1, { line: Buffer.from(JSON.stringify({ eventId: 1, ts })) })] });
    await store.close();
    const [finding] = await complaints({ CHAIN: 'none', DATABASE_PATH: path });
    expect(finding).toMatchObject({ subject: 'clock', level: 'problem', detail: expect.stringMatching(/3[56]\d\d s/) });
  });

  const CHAIN = {
    DATABASE_PATH: ':memory:',
    CHAMBER_REGISTRY_ADDRESS: `0x${'11'.repeat(20)}`,
    IDEA_FACTORY_ADDRESS: `0x${'22'.repeat(20)}`,
    RELAYER_PRIVATE_KEY: `0x${'33'.repeat(32)}`,
  } as const;

  it('doctor examines a running service', async () => {
    const clock = new TestClock();
    clock.set(Date.now());
    const { url, service } = await runService({ DATABASE_PATH: ':memory:' }, clock);
    const found = await examineService(`${url}/`, {});
    expect(found.map(({ level }) => level)).toEqual(found.map(() => 'ok'));
    expect(found.map(({ detail }) => detail)).toEqual(
      expect.arrayContaining(['WebSockets work', 'sees this machine as 127.0.0.1; no proxy forwarded an address']),
    );
    await service.stop();
    for (const asked of [url, 'localhost'])
      expect(await examineService(asked, {})).toEqual([
        expect.objectContaining({
          ...{ subject: 'service', level: 'problem' },
          detail: expect.stringContaining(`no service responds at ${asked}/: `),
        }),
      ]);
  });

  it('doctor finds a URL that differs from the signed one', async () => {
    const { url } = await runService({ DATABASE_PATH: ':memory:' });
    const levels = async (PUBLIC_URL: string) =>
      (await examineService(url, { PUBLIC_URL })).map(({ level, variable }) => [level, variable]);
    expect(await levels('https://chambers.example.org')).toContainEqual(['problem', 'PUBLIC_URL']);
    expect(await levels(`https://chambers.example.org, ${url}`)).not.toContainEqual(['problem', 'PUBLIC_URL']);
  });

  it('doctor finds an RPC that does not respond', async () => {
    const found = await complaints({ ...CHAIN, RPC_URL: 'http://127.0.0.1:9' });
    expect(found).toContainEqual(expect.objectContaining({ subject: 'chain', variable: 'RPC_URL' }));
  });

  it('doctor finds contracts without code and a relayer without funds', async () => {
    const RPC_URL = await servedChain();
    const found = (await complaints({ ...CHAIN, RPC_URL })).filter(({ subject }) => subject === 'chain');
    expect(new Set(found.map(({ variable }) => variable))).toEqual(
      new Set(['CHAMBER_REGISTRY_ADDRESS', 'IDEA_FACTORY_ADDRESS', 'RELAYER_PRIVATE_KEY']),
    );
    expect(JSON.stringify(found)).not.toContain('33'.repeat(32));
  });

  it('doctor finds an invalid CONTRACTS_FILE', async () => {
    const RPC_URL = await servedChain();
    const found = await complaints({ ...CHAIN, RPC_URL, CONTRACTS: 'quorum', CONTRACTS_FILE: '/nowhere/quorum.json' });
    const detail = '/nowhere/quorum.json not found';
    const variable = 'CONTRACTS_FILE';
    expect(found).toContainEqual({ subject: 'configuration', level: 'problem', variable, detail, exitCode: 78 });
  });

  it('doctor finds a chain with the wrong id', async () => {
    const RPC_URL = await servedChain();
    const found = await complaints({ ...CHAIN, RPC_URL, CHAIN_ID: '1' });
    expect(found).toContainEqual(expect.objectContaining({ level: 'problem', variable: 'CHAIN_ID' }));
  });
});

describe('the command', () => {
  it('the doctor command prints a table and exits with 0 if there is no problem', async () => {
    const { exitCode, out } = await run(['doctor'], SOUND);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^SUBJECT +LEVEL +VARIABLE +FINDING\n/);
    expect(out).toMatch(/flags +ok .* nothing unsafe is set/);
  });

  it('the doctor command prints JSON and exits like a start if there is a problem', async () => {
    const { exitCode, out } = await run(['doctor', '--json'], { ...SOUND, PORT: '-5' });
    expect(exitCode).toBe(78);
    const { ok, findings } = JSON.parse(out);
    expect(ok).toBe(false);
    expect(findings).toContainEqual(expect.objectContaining({ level: 'problem', variable: 'PORT' }));
  });
});
