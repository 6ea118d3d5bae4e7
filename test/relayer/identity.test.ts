import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RelayerConfig } from '../../src/relayer/context.ts';
import { type DevChain, startDevChain } from '../../src/relayer/dev-chain.ts';
import { probeChain } from '../../src/relayer/identity.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { openFaultProxy } from './fault-proxy.ts';
import { recordingLogger } from './relayer-chain.ts';

let chain: DevChain;
let config: RelayerConfig;
beforeEach(async () => {
  chain = await startDevChain({ logger: recordingLogger([]) });
  config = { ...chain.config, feeBumpSeconds: 30 };
});
afterEach(() => chain.stop());

function probe(wanted: RelayerConfig) {
  return probeChain(wanted, openAccount(wanted.privateKey).address);
}

const NOBODY = `0x${'12'.repeat(20)}` as const;

test('a probe names a chain other than the configured one', async () => {
  const { mismatches } = await probe({ ...config, chainId: 1 });
  expect(mismatches).toEqual([{ variable: 'CHAIN_ID', problem: 'the RPC serves chain 31337, expected 1' }]);
});

test('a probe names every address without a contract', async () => {
  const { mismatches } = await probe({ ...config, registryAddress: NOBODY, factoryAddress: NOBODY });
  expect(mismatches.map(({ variable }) => variable)).toEqual(['CHAMBER_REGISTRY_ADDRESS', 'IDEA_FACTORY_ADDRESS']);
});

test('a probe warns of a relayer account without funds', async () => {
  const rpc = openRpc(config.rpcUrl);
  await rpc.request('anvil_setBalance', [openAccount(config.privateKey).address, '0x0']);
  rpc.close();
  const report = await probe(config);
  expect(report).toMatchObject({ balance: 0n, mismatches: [], warnings: [{ variable: 'RELAYER_PRIVATE_KEY' }] });
});

test('a probe of an unavailable RPC finds no mismatch, because it may come back', async () => {
  const proxy = await openFaultProxy(config.rpcUrl);
  proxy.close();
  const report = await probe({ ...config, rpcUrl: proxy.url });
  expect(report).toMatchObject({ isReachable: false, mismatches: [] });
  expect(report.warnings).toEqual([{ variable: 'RPC_URL', problem: 'RPC unreachable (ECONNREFUSED)' }]);
});

test('an invalid private key is rejected without being quoted', () => {
  const privateKey = `0x${'f'.repeat(64)}` as const;
  expect(() => openAccount(privateKey)).toThrow(
    /^the relayer’s private key must be 0x and 64 hex digits, a key of secp256k1$/,
  );
});
