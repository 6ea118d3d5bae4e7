// `chambers contracts …`: from an empty chain to contracts that accept the relayer. Every usage error is reported before anything is sent.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { readNonce } from '../../src/relayer/chain-client.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { fund, NEXT, OWNER_KEY } from '../relayer/owner-account.ts';
import { quorumFile } from '../relayer/quorum-file.ts';
import { type Run, run } from './run.ts';

const RELAYER_KEY: Hex = `0x${'0c'.repeat(32)}`;
const [OWNER, RELAYER] = [openAccount(OWNER_KEY).address, openAccount(RELAYER_KEY).address];
const DEPLOY = ['deploy', `--relayer=${RELAYER}`];
/** Represents an API key in the URL. */
const SECRET = 'v2-a-key-that-must-not-show-0123456789';

let anvil: Anvil;
let rpc: Rpc;
let env: Readonly<Record<string, string>>;
beforeAll(async () => {
  anvil = await spawnAnvil([]);
  rpc = openRpc(anvil.rpcUrl);
  env = { RPC_URL: `${anvil.rpcUrl}/?key=${SECRET}`, OWNER_PRIVATE_KEY: OWNER_KEY };
  await fund(rpc, OWNER, RELAYER, NEXT);
});
afterAll(async () => {
  rpc.close();
  await anvil.kill();
});

async function contracts(words: readonly string[], changes: Readonly<Record<string, string>> = {}): Promise<Run> {
  const done = await run(['contracts', ...words], { ...env, ...changes });
  for (const text of [done.out, done.err])
    for (const secret of [OWNER_KEY, RELAYER_KEY, SECRET]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(secret.slice(2));
    }
  return done;
}

function keyFile(text: string): string {
  const path = join(temporaryFolder(), 'owner.key');
  writeFileSync(path, text);
  return path;
}

async function deployed(...options: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const { exitCode, out } = await contracts([...DEPLOY, ...options]);
  expect(exitCode).toBe(0);
  return Object.fromEntries(out.split('\n').map((line) => line.split('=')));
}

test('contracts deploy prints variables that contracts check accepts', async () => {
  const variables = await deployed(`--key-file=${keyFile(`${OWNER_KEY}\n`)}`);
  expect(variables).toMatchObject({ CHAIN_ID: '31337', CONTRACTS: 'reference' });
  const { exitCode, out } = await contracts(['check', `--relayer=${RELAYER}`, '--json'], variables);
  expect(exitCode).toBe(0);
  expect(JSON.parse(out.slice(out.indexOf('{')))).toMatchObject({ chainId: 31_337, relayer: RELAYER, owner: OWNER });
});

test('contracts set-relayer changes the relayer at once', async () => {
  const variables = await deployed();
  const before = await contracts(['check', `--relayer=${NEXT}`], variables);
  expect(before).toMatchObject({
    exitCode: 1,
    err: expect.stringMatching(/RELAYER_PRIVATE_KEY: .* rejects the account/),
  });
  const changed = await contracts(['set-relayer', NEXT], variables);
  expect(changed).toMatchObject({ exitCode: 0, out: expect.stringMatching(/changed +\["registry","factory"\]/) });
  expect((await contracts(['check', `--relayer=${NEXT}`], variables)).exitCode).toBe(0);
  expect((await contracts(['set-relayer', NEXT], variables)).out).toMatch(/already/);
});

test('the error for a chain without the required instructions says so', async () => {
  const old = await spawnAnvil(['--hardfork', 'london']);
  atEnd(() => old.kill());
  const rpcOfOld = openRpc(old.rpcUrl);
  await fund(rpcOfOld, OWNER, RELAYER);
  rpcOfOld.close();
  const { exitCode, err } = await contracts(DEPLOY, { RPC_URL: old.rpcUrl });
  expect(exitCode).toBe(1);
  expect(err).toMatch(/^failure: eth_estimateGas: .*; the contract uses an instruction that the chain lacks: /);
});

test('quorum contracts for a rehearsal are deployed and checked in the same way', async () => {
  const variables = await deployed('--contracts=quorum');
  const changes = { ...variables, CONTRACTS_FILE: quorumFile() };
  expect((await contracts(['check', `--relayer=${RELAYER}`], changes)).exitCode).toBe(0);
  const wrong = await contracts(['check', `--relayer=${RELAYER}`], {
    ...variables,
    CONTRACTS_FILE: quorumFile({ bps: [] }),
  });
  expect(wrong.err).toMatch(/CONTRACTS_FILE: .*quorum.json: bps.0 is missing/);
  const set = await contracts(['set-relayer', NEXT], variables);
  expect(set).toMatchObject({ exitCode: 1, err: expect.stringContaining('can’t change its relayer') });
});

test.each<readonly [string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
  ['no RPC', ['deploy'], { RPC_URL: '' }, /^usage: set --rpc or RPC_URL$/],
  ['a wrong RPC', ['deploy', `--rpc=${SECRET}`], {}, /^usage: --rpc must be an http\(s\) URL$/],
  ['an unreachable RPC', [...DEPLOY, `--rpc=http://127.0.0.1:9/${SECRET}`], {}, /^unreachable: .*--rpc or RPC_URL/],
  ['no relayer', ['deploy'], {}, /^usage: set --relayer or RELAYER_PRIVATE_KEY$/],
  ['a key as relayer', ['deploy', `--relayer=${RELAYER_KEY}`], {}, /^usage: --relayer must be an EVM address/],
  ['the zero address as relayer', ['deploy', `--relayer=0x${'0'.repeat(40)}`], {}, /must not be the zero address/],
  ['no key', DEPLOY, { OWNER_PRIVATE_KEY: '' }, /^usage: set --key-file or OWNER_PRIVATE_KEY$/],
  ['a wrong key', DEPLOY, { OWNER_PRIVATE_KEY: '0x12' }, /^usage: OWNER_PRIVATE_KEY must be a secp256k1/],
  ['a key as the key file', [...DEPLOY, `--key-file=${OWNER_KEY}`], {}, /^usage: --key-file takes the path/],
  ['a missing key file', [...DEPLOY, '--key-file=/nowhere/key'], {}, /^usage: --key-file: \/nowhere\/key not found$/],
  ['another chain', DEPLOY, { CHAIN_ID: '1' }, /^failure: CHAIN_ID: the RPC serves chain 31337, expected 1$/],
  ['unknown contracts', [...DEPLOY, '--contracts=own'], {}, /^usage: --contracts must be reference or quorum$/],
  [
    'an owner without funds',
    DEPLOY,
    { OWNER_PRIVATE_KEY: `0x${'0d'.repeat(32)}` },
    /^failure: the account 0x\w+ has 0 ether and needs 0\.0/,
  ],
  ['no registry', ['set-relayer', NEXT], {}, /^usage: set --registry or CHAMBER_REGISTRY_ADDRESS$/],
])('one sentence reports %s before anything is sent', async (_title, words, changes, sentence) => {
  const nonce = await readNonce(rpc, OWNER);
  const { exitCode, err } = await contracts(words, changes);
  expect(exitCode).toBeGreaterThan(0);
  expect(err).toMatch(sentence);
  expect(await readNonce(rpc, OWNER)).toBe(nonce);
});

test('contracts commands report a key that does not own the contracts, a contract as relayer, and swapped addresses', async () => {
  const variables = await deployed();
  const { CHAMBER_REGISTRY_ADDRESS: registry = '', IDEA_FACTORY_ADDRESS: factory = '' } = variables;
  const stranger = await contracts(['set-relayer', NEXT], { ...variables, OWNER_PRIVATE_KEY: RELAYER_KEY });
  expect(stranger.err).toMatch(new RegExp(`owned by ${OWNER}, not by the account ${RELAYER}`));
  expect((await contracts(['set-relayer', registry], variables)).err).toMatch(/is a contract: name the account/);
  const swapped = { CHAMBER_REGISTRY_ADDRESS: factory, IDEA_FACTORY_ADDRESS: registry };
  expect((await contracts(['check', `--relayer=${RELAYER}`], swapped)).err).toMatch(/swap the two/);
});
