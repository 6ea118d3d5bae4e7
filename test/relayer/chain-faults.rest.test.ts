import type { Hex } from 'viem';
import { beforeEach, expect, test } from 'vitest';
import { sendRaw } from '../../src/relayer/chain-client.ts';
import { commitChamberCall, REFERENCE } from '../../src/relayer/contracts.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { deployContract } from '../kit/contracts.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import {
  expectRecordedOnce,
  expectSettledOnce,
  feesOf,
  isSettled,
  onChain,
  openRelayerChain,
  type RelayerChain,
  signOutsideLog,
} from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});

const GWEI = 1_000_000_000n;

test('a transaction that the pool dropped is rebroadcast unchanged', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer();
  await until(() => opened.inPool(1));
  await rpc.request('anvil_dropAllTransactions', []);
  await until(() => opened.inPool(1));
  await opened.automine(true);
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(1);
});

test('a stuck transaction is replaced at its nonce with a fee raised by at least a tenth', async () => {
  const { forum } = opened;
  await opened.automine(false);
  addChamber(forum, 1, []);
  opened.relayer();
  await until(() => opened.inPool(1));
  opened.clock.ahead += 31_000;
  await until(() => forum.facts('relay.commit_submitted').length === 2);

  const [first, second] = forum.facts('relay.commit_submitted');
  expect(second?.nonce).toBe(first?.nonce);
  const before = feesOf(first);
  const after = feesOf(second);
  expect(after.maxFeePerGas * 10n).toBeGreaterThanOrEqual(before.maxFeePerGas * 11n);
  expect(after.maxPriorityFeePerGas * 10n).toBeGreaterThanOrEqual(before.maxPriorityFeePerGas * 11n);
  await opened.automine(true);
  await expectSettledOnce(opened);
  expect(forum.facts('chamber.committed')).toMatchObject([{ txHash: second?.txHash }]);
});

test('fees stop rising while no block is mined', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  addChamber(forum, 1, []);
  opened.relayer();
  await until(() => opened.inPool(1));
  for (let round = 0; round < 30; round++) {
    const count = forum.facts('relay.commit_submitted').length;
    opened.clock.ahead += 31_000;
    await Promise.race([
      until(() => forum.facts('relay.commit_submitted').length > count),
      new Promise((resolve) => setTimeout(resolve, 150)),
    ]);
  }
  const submitted = forum.facts('relay.commit_submitted');
  const [first, last] = [feesOf(submitted[0]), feesOf(submitted.at(-1))];
  expect(last.maxFeePerGas).toBeGreaterThan(first.maxFeePerGas);
  expect(last.maxFeePerGas).toBeLessThan(first.maxFeePerGas * 5n);
  await opened.automine(true);
  await rpc.request('evm_mine', []);
  await until(() => isSettled(forum));
});

test('the older of two transactions with one nonce counts if it is mined', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  addChamber(forum, 1, []);
  const relayer = opened.relayer();
  await until(() => opened.inPool(1));
  opened.clock.ahead += 31_000;
  await until(() => forum.facts('relay.commit_submitted').length === 2);
  await relayer.stop();
  await rpc.request('anvil_dropAllTransactions', []);
  const [first] = forum.facts('relay.commit_submitted');
  await sendRaw(rpc, first?.rawTransaction ?? '0x');
  await rpc.request('evm_mine', []);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(forum.facts('chamber.committed')).toMatchObject([{ txHash: first?.txHash }]);
});

test('an outcome waits for its confirmations, and a transaction reorganized away before that is rebroadcast', async () => {
  const { forum, rpc } = opened;
  await rpc.request('anvil_mine', ['0x5']);
  addChamber(forum, 1, []);
  opened.relayer({ confirmations: 3 });
  await until(async () => (await onChain(opened, 1)).commits.length === 1);
  await rpc.request('anvil_reorg', [1, []]);
  expect((await onChain(opened, 1)).commits).toHaveLength(0);
  await until(async () => (await onChain(opened, 1)).commits.length === 1);
  await rpc.request('anvil_mine', ['0x1']);
  expect(forum.facts('chamber.committed')).toEqual([]);
  await rpc.request('anvil_mine', ['0x1']);
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(1);
});

test('recorded transactions that a reorganization removed are rebroadcast unchanged', async () => {
  const { forum, rpc } = opened;
  await rpc.request('anvil_mine', ['0x5']);
  addChamber(forum, 1, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 1 },
  ]);
  opened.relayer();
  await until(() => isSettled(forum));
  const before = forum.facts('idea.deployed');
  await rpc.request('anvil_reorg', [3, []]);
  expect(await onChain(opened, 1)).toEqual({ commits: [], deployments: [] });
  opened.clock.ahead += 6_000;
  await until(async () => (await onChain(opened, 1)).deployments.length === 2);
  expect(forum.facts('idea.deployed')).toEqual(before);
  await expectRecordedOnce(opened);
});

test('a restart after a reorganization rebroadcasts lost transactions before it reuses their nonces', async () => {
  const { forum, rpc } = opened;
  await rpc.request('anvil_mine', ['0x5']);
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const relayer = opened.relayer();
  await until(() => isSettled(forum));
  await relayer.stop();
  await rpc.request('anvil_reorg', [2, []]);
  addChamber(forum, 2, [{ ticker: 'TWO', backers: 1 }]);
  opened.relayer();
  await expectSettledOnce(opened);
});

test('a relayer without funds raises an alert and resumes when funded', async () => {
  const { forum, rpc } = opened;
  const relayerAddress = openAccount(opened.config.privateKey).address;
  await rpc.request('anvil_setBalance', [relayerAddress, '0x0']);
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const relayer = opened.relayer();
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toBe(`funds: relayer account ${relayerAddress} has insufficient funds for gas`);
  await rpc.request('anvil_setBalance', [relayerAddress, '0x56bc75e2d63100000']);
  await expectSettledOnce(opened);
  expect(relayer.status()).toEqual({ ok: true, pending: 0, failed: 0, leads: true });
});

test('if funds run out after signing, the logged transaction is delayed and no second one is signed', async () => {
  const { forum, rpc } = opened;
  const relayerAddress = openAccount(opened.config.privateKey).address;
  await opened.automine(false);
  addChamber(forum, 1, []);
  const relayer = opened.relayer();
  await until(() => opened.inPool(1));
  await rpc.request('anvil_dropAllTransactions', []);
  await rpc.request('anvil_setBalance', [relayerAddress, '0x0']);
  await until(() => !relayer.status().ok);
  await rpc.request('anvil_setBalance', [relayerAddress, '0x56bc75e2d63100000']);
  await opened.automine(true);
  await until(() => isSettled(forum));
  expect(forum.facts('relay.commit_submitted')).toHaveLength(1);
  expect(relayer.status().ok).toBe(true);
});

test('a nonce that another transaction used leads to a new transaction at the next nonce', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer();
  await until(() => opened.inPool(1));
  const [first] = forum.facts('relay.commit_submitted');
  await sendRaw(rpc, await signOutsideLog(opened, { nonce: first?.nonce ?? 0, fee: 50n * GWEI }));
  await rpc.request('evm_mine', []);
  await opened.automine(true);
  await expectSettledOnce(opened, 200);
  const second = forum.facts('relay.commit_submitted').at(-1);
  expect(second?.nonce).toBe((first?.nonce ?? 0) + 1);
});

test('nonces that an operator has used are skipped', async () => {
  const { forum, rpc } = opened;
  for (const nonce of [0, 1, 2]) await sendRaw(rpc, await signOutsideLog(opened, { nonce }));
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted')).toMatchObject([{ nonce: 3 }]);
});

test('a root that is already on the chain is recorded with its own transaction', async () => {
  const { forum, rpc } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  await sendRaw(rpc, await signOutsideLog(opened, { to: 'registry', data: commitChamberCall(1, forum.root(1)) }));
  await until(async () => (await onChain(opened, 1)).commits.length === 1);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted')).toEqual([]);
});

test('the root is found with a provider that limits eth_getLogs to 2,000 blocks', async () => {
  const { forum, rpc, proxy } = opened;
  addChamber(forum, 1, []);
  await sendRaw(rpc, await signOutsideLog(opened, { to: 'registry', data: commitChamberCall(1, forum.root(1)) }));
  await until(async () => (await onChain(opened, 1)).commits.length === 1);
  for (let batch = 0; batch < 21; batch++) await rpc.request('anvil_mine', ['0x64']);
  proxy.fault = (method, [filter]) => {
    if (method !== 'eth_getLogs') return undefined;
    const { fromBlock, toBlock } = filter as { readonly fromBlock: string; readonly toBlock: string };
    const isTooWide = Number(toBlock) - Number(fromBlock) >= 2_000;
    return isTooWide ? { kind: 'error', message: 'block range too large' } : undefined;
  };
  opened.relayer({ rpcUrl: proxy.url });
  await expectSettledOnce(opened);
}, 90_000);

test('a node that rejects one job does not delay others, and a lasting rejection raises an alert', async () => {
  const { forum, proxy } = opened;
  addChamber(forum, 1, []);
  addChamber(forum, 2, []);
  const rejected = commitChamberCall(1, forum.root(1));
  proxy.fault = (method, [call]) =>
    method === 'eth_estimateGas' && (call as { readonly data: string }).data === rejected
      ? { kind: 'error', message: 'no luck today' }
      : undefined;
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => forum.state(2).settlement.committed !== null);
  opened.clock.ahead += 31_000;
  await until(() => !relayer.status().ok);
  expect(relayer.status()).toMatchObject({ reason: 'chamber 1 (RPC): eth_estimateGas: no luck today', pending: 1 });
  expect(opened.lines.filter((line) => line.includes('RPC request rejected'))).toHaveLength(1);
  proxy.fault = () => undefined;
  await until(() => isSettled(forum));
  await until(() => relayer.status().ok);
});

test('a factory with another relayer raises an alert and fails no idea', async () => {
  const { forum, rpc, config } = opened;
  const [deployer] = (await rpc.request('eth_accounts', [])) as Hex[];
  const factory = await deployContract(rpc, 'IdeaFactory', config.registryAddress, deployer);
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const relayer = opened.relayer({ factoryAddress: factory.address });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(
    /^chain: the factory at 0x\w+: deployIdea rejects the account 0x\w+ \(NotRelayer/,
  );
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
});

test('a different root on the chain raises an alert and does not delay other chambers', async () => {
  const { forum, rpc } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const other = `0x${'42'.repeat(32)}` as const;
  await sendRaw(rpc, await signOutsideLog(opened, { to: 'registry', data: commitChamberCall(1, other) }));
  await until(async () => (await onChain(opened, 1)).commits.length === 1);
  addChamber(forum, 2, [{ ticker: 'TWO', backers: 1 }]);
  const relayer = opened.relayer();
  await until(() => forum.facts('idea.deployed').length === 1);
  expect(relayer.status()).toMatchObject({
    ok: false,
    reason: `chamber 1: the registry holds a different root, ${other}`,
  });
  expect(forum.state(1).settlement.committed).toBeNull();
  expect(forum.state(2).settlement.committed).not.toBeNull();
});

test('a token that is already on the chain is recorded with its own transaction', async () => {
  const { forum, rpc } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const [idea] = forum.state(1).ideas;
  if (idea === undefined) throw new Error('no idea');
  let isRejecting = true;
  forum.beforeRecord = (fact) => {
    if (fact.type === 'relay.deploy_submitted' && isRejecting) throw new Error('rejected');
  };
  const first = opened.relayer();
  await until(() => forum.facts('chamber.committed').length === 1);
  await first.stop();
  isRejecting = false;
  await sendRaw(rpc, await signOutsideLog(opened, { nonce: 1, to: 'factory', data: REFERENCE.deployCall(1, idea) }));
  await until(async () => (await onChain(opened, 1)).deployments.length === 1);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
});

test('a deployment that reverts in its block is recorded with transaction and reason', async () => {
  const { forum, proxy } = opened;
  let wrongEstimates = 1;
  proxy.fault = (method) => {
    const isDeployment = forum.facts('chamber.committed').length === 1;
    return method === 'eth_estimateGas' && isDeployment && wrongEstimates-- > 0
      ? { kind: 'result', result: '0x2dc6c0' }
      : undefined;
  };
  addChamber(forum, 1, [{ ticker: 'NOBODY', backers: 1, creatorWallet: `0x${'0'.repeat(40)}` }]);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => isSettled(forum));
  const [submitted] = forum.facts('relay.deploy_submitted');
  expect(forum.facts('idea.deploy_failed')).toEqual([
    { ideaId: 'idea-1', txHash: submitted?.txHash, reason: `ERC20InvalidReceiver(0x${'0'.repeat(40)})` },
  ]);
});

test('a transaction that ran out of gas is replaced by a new one', async () => {
  const { forum, proxy } = opened;
  let wrongEstimates = 1;
  proxy.fault = (method) =>
    method === 'eth_estimateGas' && wrongEstimates-- > 0 ? { kind: 'result', result: '0x7530' } : undefined;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer({ rpcUrl: proxy.url });
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(2);
});
