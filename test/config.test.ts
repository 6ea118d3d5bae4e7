// Absent variables have defaults, and all invalid ones are reported at once.
import { describe, expect, it } from 'vitest';
import { ConfigError, describeProblem, readConfig } from '../src/config.ts';

const KEY = `0x${'1'.repeat(64)}`;
const ADDRESS = `0x${'ab'.repeat(20)}`;
const ON_A_CHAIN = {
  RPC_URL: 'http://127.0.0.1:8545',
  RELAYER_PRIVATE_KEY: KEY,
  CHAMBER_REGISTRY_ADDRESS: ADDRESS,
  IDEA_FACTORY_ADDRESS: ADDRESS,
};

function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(describeProblem);
    throw error;
  }
}

describe('the configuration', () => {
  it('the configuration requires no variables', () => {
    expect(readConfig({})).toMatchObject({
      PORT: 8787,
      HOST: '127.0.0.1',
      PUBLIC_URL: [],
      DATABASE_PATH: 'data/chambers.db',
      DEV_ALLOW_UNSIGNED: false,
      RPC_URL: undefined,
      CHAIN: undefined,
      CONFIRMATIONS: 1,
      FEE_BUMP_SECONDS: 30,
      FEE_MAX_GWEI: undefined,
      FEE_TIP_GWEI: undefined,
      SIGNATURE_MAX_AGE_SECONDS: 300,
      SIGNATURE_MAX_SKEW_SECONDS: 60,
      MAX_BODY_BYTES: 65_536,
      MEMBERS_MAX: 256,
      IDEAS_MAX: 256,
    });
  });

  it('the configuration treats an empty variable as absent', () => {
    expect(readConfig({ PORT: '', PUBLIC_URL: '', CHAIN: '' })).toEqual(readConfig({}));
  });

  it('PUBLIC_URL accepts several addresses and drops their trailing slashes', () => {
    expect(readConfig({ PUBLIC_URL: 'https://a.test/, http://127.0.0.1:8787/api' }).PUBLIC_URL).toEqual([
      'https://a.test',
      'http://127.0.0.1:8787/api',
    ]);
  });

  it.each([
    ['true', true],
    ['TRUE', false],
    ['1', false],
    ['yes', false],
    ['false', false],
  ])('DEV_ALLOW_UNSIGNED allows unsigned requests only if the value is true: %s', (text, expected) => {
    expect(readConfig({ DEV_ALLOW_UNSIGNED: text }).DEV_ALLOW_UNSIGNED).toBe(expected);
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80 '],
    ['PORT', '0x50'],
    ['PUBLIC_URL', 'forum.test'],
    ['PUBLIC_URL', 'https://forum.test?x=1'],
    ['PUBLIC_URL', 'https://forum.test/#top'],
    ['PUBLIC_URL', 'https://user:secret@forum.test'],
    ['PUBLIC_URL', 'https://Forum.test'],
    ['PUBLIC_URL', 'https://forum.test:443'],
    ['NODE_ENV', 'Production'],
    ['NODE_ENV', 'prod'],
    ['RELAYER_PRIVATE_KEY', `0x${'0'.repeat(64)}`],
    ['RELAYER_PRIVATE_KEY', `0x${'f'.repeat(64)}`],
    ['PUBLIC_URL', 'ftp://forum.test'],
    ['PUBLIC_URL', 'https://a.test,'],
    ['RPC_URL', 'nowhere'],
    ['CHAIN', 'some'],
    ['CHAIN_ID', '0'],
    ['CHAMBER_REGISTRY_ADDRESS', '0x12'],
    ['CONTRACTS', 'Quorum'],
    ['RELAYER_PRIVATE_KEY', KEY.slice(2)],
    ['CONFIRMATIONS', '0'],
    ['SIGNATURE_MAX_AGE_SECONDS', '1.5'],
    ['SIGNATURE_MAX_AGE_SECONDS', '86401'],
    ['SIGNATURE_MAX_SKEW_SECONDS', '601'],
    ['MAX_BODY_BYTES', '64k'],
    ['LOG_LEVEL', 'loud'],
    ['NODE_ENV', 'pro duction'],
    ['DATABASE_PATH', 'data/chambers.db '],
    ['DATABASE_PATH', 'data/chambers.db\n'],
  ])('the configuration rejects %s=%j and names the variable', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([expect.stringMatching(`^${name}: must `)]);
  });

  it('the configuration rejects a ping interval that is not shorter than the dead time', () => {
    expect(problemsOf({ STREAM_DEAD_SECONDS: '31' })).toEqual([]);
    expect(problemsOf({ STREAM_DEAD_SECONDS: '30' })).toEqual([
      'STREAM_PING_SECONDS: must be less than STREAM_DEAD_SECONDS, which is 30',
    ]);
  });

  it('the errors of a configuration never repeat a secret', () => {
    expect(problemsOf({ RELAYER_PRIVATE_KEY: 'secret' }).join()).not.toContain('secret');
  });

  it('DATABASE_URL may have several hosts and replaces a file, and its errors never repeat the password', () => {
    for (const hosts of ['db', 'db:5433', 'one,two:5433', '[::1]:5432']) {
      expect(problemsOf({ DATABASE_URL: `postgres://me:secret@${hosts}/chambers?sslmode=require` })).toEqual([]);
    }
    for (const url of [
      'mysql://me:secret@db/chambers',
      'postgres://me:secret@db',
      'postgres://me:secret@db:x/chambers',
    ]) {
      expect(problemsOf({ DATABASE_URL: url })).toEqual([
        expect.stringMatching(/^DATABASE_URL: must be postgres:(?!.*secret)/),
      ]);
    }
    expect(problemsOf({ DATABASE_URL: 'postgres://db/chambers', DATABASE_PATH: 'chambers.db' })).toEqual([
      expect.stringContaining(
        'DATABASE_URL: cannot be combined with DATABASE_PATH: the log is either in PostgreSQL or in a file',
      ),
    ]);
  });

  it('the configuration reports all wrong variables at once', () => {
    const problems = problemsOf({ PORT: 'x', MEMBERS_MAX: '0', LOG_LEVEL: 'loud', NODE_ENV: 'production' });
    const names = problems.map((problem) => problem.split(':')[0]);
    expect(names).toEqual(['PORT', 'MEMBERS_MAX', 'LOG_LEVEL', 'PUBLIC_URL', 'RPC_URL', 'SERVICE_KEY_FILE']);
  });
});

describe('a chain', () => {
  it.each(['RELAYER_PRIVATE_KEY', 'CHAMBER_REGISTRY_ADDRESS', 'IDEA_FACTORY_ADDRESS'])('a chain needs %s', (name) => {
    expect(problemsOf(ON_A_CHAIN)).toEqual([]);
    expect(problemsOf({ ...ON_A_CHAIN, [name]: '' })).toEqual([expect.stringMatching(`^${name}: `)]);
  });

  it('quorum contracts need CONTRACTS_FILE and an RPC, and reference contracts reject the file', () => {
    const onQuorum = { ...ON_A_CHAIN, CONTRACTS: 'quorum', CONTRACTS_FILE: 'quorum.json' };
    expect(problemsOf(onQuorum)).toEqual([]);
    expect(problemsOf({ CONTRACTS: 'quorum' })).toEqual([
      'RPC_URL: is needed with CONTRACTS=quorum',
      'CONTRACTS_FILE: is needed with CONTRACTS=quorum',
    ]);
    expect(problemsOf({ ...onQuorum, CONTRACTS: '' })).toEqual(['CONTRACTS_FILE: is for CONTRACTS=quorum only']);
  });

  it('CHAIN=none needs no chain', () => {
    expect(problemsOf({ CHAIN: 'none', CONTRACTS: 'quorum' })).toEqual([]);
    expect(problemsOf({ CHAIN: 'none', RPC_URL: ON_A_CHAIN.RPC_URL })).toEqual([]);
  });
});

describe('production', () => {
  const strict = {
    NODE_ENV: 'production',
    PUBLIC_URL: 'https://forum.test',
    CHAIN: 'none',
    SERVICE_KEY_FILE: 'keys.json',
  };

  it.each([
    ['PUBLIC_URL', { PUBLIC_URL: '' }],
    ['DEV_ALLOW_UNSIGNED', { DEV_ALLOW_UNSIGNED: 'true' }],
    ['RPC_URL', { CHAIN: '' }],
    ['SERVICE_KEY_FILE', { SERVICE_KEY_FILE: '' }],
  ])('production rejects %s', (name, change) => {
    expect(problemsOf(strict)).toEqual([]);
    expect(problemsOf({ ...strict, ...change })).toEqual([expect.stringMatching(`^${name}: `)]);
  });
});
