// Tests nonces after reorganizations, with faulty nodes and new keys: no signed transaction waits forever.
import { beforeEach, expect, test } from 'vitest';
import { openAccount } from '../../src/relayer/transactions.ts';
import { deployContract } from '../kit/contracts.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import {
  consumeNonce,
  expectSettledOnce,
  feesOf,
  isSettled,
  onChain,
  openRelayerChain,
  type RelayerChain,
  untilSettled,
} from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});

const IDEAS = [
  { ticker: 'ONE', backers: 1 },
  { ticker: 'TWO', backers: 1 },
] as const;

test('a nonce gap below a signed transaction is filled after a reorganization', async () => {
  const { forum, rpc } = opened;
  const snapshot = await rpc.request('evm_snapshot', []);
  for (const nonce of [0, 1]) await consumeNonce(opened, nonce);
  await opened.automine(false);
  addChamber(forum, 1, IDEAS);
  opened.relayer();
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  await rpc.request('evm_revert', [snapshot]);
  await opened.automine(true);
  await expectSettledOnce(opened, 200);
  expect(forum.facts('relay.commit_submitted').map(({ nonce }) => nonce)).toEqual([2, 0]);
});

test('a node that temporarily reports a nonce that is too high only delays the work', async () => {
  const { forum, proxy } = opened;
  proxy.fault = (method) => (method === 'eth_getTransactionCount' ? { kind: 'result', result: '0x3' } : undefined);
  addChamber(forum, 1, IDEAS);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  proxy.fault = () => undefined;
  await expectSettledOnce(opened, 200);
});

test('recorded transactions above a nonce gap are restored too', async () => {
  const { forum, rpc } = opened;
  const snapshot = await rpc.request('evm_snapshot', []);
  await consumeNonce(opened, 0);
  addChamber(forum, 1, IDEAS);
  opened.relayer();
  await until(() => isSettled(forum));
  await rpc.request('evm_revert', [snapshot]);
  await untilOnChain(1, IDEAS.length);
});

test('a recorded transaction that was lost gets a higher fee at its nonce and does not delay others', async () => {
  const { forum, rpc } = opened;
  const snapshot = await rpc.request('evm_snapshot', []);
  addChamber(forum, 1, IDEAS);
  const relayer = opened.relayer();
  await until(() => isSettled(forum));
  await opened.automine(false);
  await rpc.request('evm_revert', [snapshot]);
  await rpc.request('anvil_setNextBlockBaseFeePerGas', [`0x${(200n * 10n ** 9n).toString(16)}`]);
  await rpc.request('evm_mine', []);
  addChamber(forum, 2, []);
  await until(() => {
    opened.clock.ahead += 1_000;
    return forum.facts('relay.commit_submitted').length >= 3;
  });
  expect(relayer.status().pending).toBeGreaterThan(0);
  await opened.automine(true);
  await untilOnChain(1, IDEAS.length);
  await untilSettled(opened, 200);
  const [first, second] = forum.state(1).settlement.commitSubmitted;
  expect(second?.nonce).toBe(first?.nonce);
  expect(feesOf(second).maxFeePerGas * 10n).toBeGreaterThanOrEqual(feesOf(first).maxFeePerGas * 11n);
  expect(forum.facts('chamber.committed')).toHaveLength(2);
  expect(forum.facts('idea.deployed')).toHaveLength(2);
  await until(() => relayer.status().pending === 0);
});

test('a new key starts at its own nonces and continues the old key’s open work', async () => {
  const { forum, rpc } = opened;
  addChamber(forum, 1, IDEAS);
  const first = opened.relayer();
  await until(() => isSettled(forum));
  await opened.automine(false);
  addChamber(forum, 2, IDEAS);
  await until(() => forum.facts('relay.commit_submitted').length === 2);
  await first.stop();
  await rpc.request('anvil_dropAllTransactions', []);
  await opened.automine(true);

  const privateKey = `0x${'ab'.repeat(32)}` as const;
  const { address } = openAccount(privateKey);
  await rpc.request('anvil_setBalance', [address, '0x56bc75e2d63100000']);
  const { address: registryAddress } = await deployContract(rpc, 'ChamberRegistry', address);
  const { address: factoryAddress } = await deployContract(rpc, 'IdeaFactory', registryAddress, address);
  opened.relayer({ privateKey, registryAddress, factoryAddress });
  await untilSettled(opened, 200);
  expect(forum.state(2).settlement.commitSubmitted.map(({ nonce }) => nonce)).toEqual([3, 0]);
  expect(await onChain({ rpc, config: { registryAddress, factoryAddress } }, 2)).toMatchObject({
    commits: [expect.anything()],
    deployments: [{}, {}],
  });
});

async function untilOnChain(chamberId: number, deployed: number): Promise<void> {
  await until(async () => {
    opened.clock.ahead += 200;
    const { commits, deployments } = await onChain(opened, chamberId);
    return commits.length === 1 && deployments.length === deployed;
  });
}
