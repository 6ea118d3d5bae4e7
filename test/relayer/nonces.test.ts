// Nonces after reorganizations, wrong nodes and new keys: no signed transaction may wait without end.
import { parseTransaction } from 'viem';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { creationCode } from '../../src/relayer/contracts.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { openFaultProxy } from './fault-proxy.ts';
import {
  expectRecordedOnce,
  isSettled,
  onChain,
  openRelayerChain,
  type RelayerChain,
  sendForeign,
} from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});
afterEach(() => opened.close());

const IDEAS = [
  { ticker: 'ONE', backers: 1 },
  { ticker: 'TWO', backers: 1 },
] as const;

test('a nonce gap that a reorganization left below a signed transaction is filled', async () => {
  const { forum, rpc } = opened;
  const snapshot = await rpc.request('evm_snapshot', []);
  for (const nonce of [0, 1]) await sendForeign(opened, nonce);
  await rpc.request('evm_setAutomine', [false]);
  addChamber(forum, 1, IDEAS);
  opened.relayer();
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  await rpc.request('evm_revert', [snapshot]);
  await mine();
  await untilSettled();
  expect(forum.facts('relay.commit_submitted').map(({ nonce }) => nonce)).toEqual([2, 0]);
  await expectRecordedOnce(opened);
});

test('a node that reports too high a nonce for a while delays the work', async () => {
  const { forum, chain } = opened;
  const proxy = await openFaultProxy(chain.config.rpcUrl);
  proxy.fault = (method) => (method === 'eth_getTransactionCount' ? { kind: 'result', result: '0x3' } : undefined);
  addChamber(forum, 1, IDEAS);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  proxy.fault = () => undefined;
  await untilSettled();
  await expectRecordedOnce(opened);
  proxy.close();
});

test('recorded transactions above a nonce gap are brought back too', async () => {
  const { forum, rpc } = opened;
  const snapshot = await rpc.request('evm_snapshot', []);
  await sendForeign(opened, 0);
  addChamber(forum, 1, IDEAS);
  opened.relayer();
  await until(() => isSettled(forum));
  await rpc.request('evm_revert', [snapshot]);
  await untilOnChain(1, IDEAS.length);
});

test('a recorded transaction that was lost gets a raised fee at its nonce and holds up no other', async () => {
  const { forum, rpc } = opened;
  const snapshot = await rpc.request('evm_snapshot', []);
  addChamber(forum, 1, IDEAS);
  const relayer = opened.relayer();
  await until(() => isSettled(forum));
  await rpc.request('evm_setAutomine', [false]);
  await rpc.request('evm_revert', [snapshot]);
  await rpc.request('anvil_setNextBlockBaseFeePerGas', [`0x${(200n * 10n ** 9n).toString(16)}`]);
  await rpc.request('evm_mine', []);
  addChamber(forum, 2, []);
  await until(() => {
    opened.clock.ahead += 1_000;
    return forum.facts('relay.commit_submitted').length >= 3;
  });
  expect(relayer.status().pending).toBeGreaterThan(0);
  await mine();
  await untilOnChain(1, IDEAS.length);
  await untilSettled();
  const [first, second] = forum.state(1).settlement.commitSubmitted;
  expect(second?.nonce).toBe(first?.nonce);
  expect(feeOf(second) * 10n).toBeGreaterThanOrEqual(feeOf(first) * 11n);
  expect(forum.facts('chamber.committed')).toHaveLength(2);
  expect(forum.facts('idea.deployed')).toHaveLength(2);
  await until(() => relayer.status().pending === 0);
});

test('a new key starts at its own nonces and continues the old key’s open work', async () => {
  const { forum, rpc, chain } = opened;
  addChamber(forum, 1, IDEAS);
  const first = opened.relayer();
  await until(() => isSettled(forum));
  await rpc.request('evm_setAutomine', [false]);
  addChamber(forum, 2, IDEAS);
  await until(() => forum.facts('relay.commit_submitted').length === 2);
  await first.stop();
  await rpc.request('anvil_dropAllTransactions', []);
  await mine();

  const privateKey = `0x${'ab'.repeat(32)}` as const;
  const { address } = openAccount(privateKey);
  await rpc.request('anvil_setBalance', [address, '0x56bc75e2d63100000']);
  const registryAddress = await create(creationCode('ChamberRegistry', address));
  const factoryAddress = await create(creationCode('IdeaFactory', registryAddress, address));
  opened.relayer({ privateKey, registryAddress, factoryAddress });
  await untilSettled();
  expect(forum.state(2).settlement.commitSubmitted.map(({ nonce }) => nonce)).toEqual([3, 0]);
  const settled = { ...opened, chain: { ...chain, config: { ...chain.config, registryAddress, factoryAddress } } };
  expect(await onChain(settled, 2)).toMatchObject({ commits: [expect.anything()], deployments: [{}, {}] });
});

async function mine(): Promise<void> {
  await opened.rpc.request('evm_setAutomine', [true]);
  await opened.rpc.request('evm_mine', []);
}

/** Moves the clock on, so that what has to last for a while has lasted. */
async function untilSettled(): Promise<void> {
  await until(() => {
    opened.clock.ahead += 200;
    return isSettled(opened.forum);
  });
}

async function untilOnChain(chamberId: number, deployed: number): Promise<void> {
  await until(async () => {
    opened.clock.ahead += 200;
    const { commits, deployments } = await onChain(opened, chamberId);
    return commits.length === 1 && deployments.length === deployed;
  });
}

function feeOf(transaction: RelayTransaction | undefined): bigint {
  return parseTransaction(transaction?.rawTransaction ?? '0x').maxFeePerGas ?? 0n;
}

async function create(data: `0x${string}`): Promise<`0x${string}`> {
  const { rpc } = opened;
  const [deployer] = (await rpc.request('eth_accounts', [])) as `0x${string}`[];
  const hash = await rpc.request('eth_sendTransaction', [{ from: deployer, data }]);
  const receipt = () =>
    rpc.request('eth_getTransactionReceipt', [hash]) as Promise<{ contractAddress: `0x${string}` } | null>;
  await until(async () => (await receipt()) !== null);
  return (await receipt())?.contractAddress ?? '0x';
}
