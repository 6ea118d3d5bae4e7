// Tests situations that block other relayers: nonces after a restart, late receipts, underpriced replacements, an RPC that forgets transactions,
// and a spike of the base fee. Each resolves without an operator, with one transaction for each job.
import { parseTransaction } from 'viem';
import { beforeEach, expect, test } from 'vitest';
import { openAccount } from '../../src/relayer/transactions.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { expectSettledOnce, isSettled, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
let proxy: FaultProxy;
beforeEach(async () => {
  opened = await openRelayerChain();
  proxy = opened.proxy;
});

const GWEI = 1_000_000_000n;
const FEE_BUMP_MILLIS = 31_000;
const IDEA = [{ ticker: 'ONE', backers: 1 }] as const;

test('after a restart, the relayer fills a nonce gap left by a transaction that the node lost', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  for (const chamberId of [1, 2, 3]) addChamber(forum, chamberId, []);
  const first = opened.relayer();
  await until(() => opened.inPool(3));
  await first.stop();
  const [lowest] = forum.facts('relay.commit_submitted');
  await rpc.request('anvil_dropTransaction', [lowest?.txHash]);
  await opened.automine(true);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(
    forum
      .facts('relay.commit_submitted')
      .map(({ nonce }) => nonce)
      .toSorted(),
  ).toEqual([0, 1, 2]);
});

test('a restarted relayer repeats no transaction while the node reports a nonce that is too low', async () => {
  const { forum } = opened;
  addChamber(forum, 1, IDEA);
  const first = opened.relayer();
  await until(() => isSettled(forum));
  await first.stop();
  addChamber(forum, 2, IDEA);
  proxy.fault = (method) => (method === 'eth_getTransactionCount' ? { kind: 'result', result: '0x0' } : undefined);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => proxy.requests.filter((method) => method === 'eth_sendRawTransaction').length > 2);
  proxy.fault = () => undefined;
  await expectSettledOnce(opened, 200);
  expect(forum.facts('relay.commit_submitted').map(({ nonce }) => nonce)).toEqual([0, 2]);
});

test('receipts, transactions and logs that arrive minutes late delay the work and repeat nothing', async () => {
  const { forum, clock } = opened;
  const late = ['eth_getTransactionReceipt', 'eth_getTransactionByHash'];
  proxy.fault = (method) => {
    if (late.includes(method)) return { kind: 'result', result: null };
    return method === 'eth_getLogs' ? { kind: 'result', result: [] } : undefined;
  };
  addChamber(forum, 1, IDEA);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  for (let minute = 0; minute < 5; minute++) {
    const before = proxy.requests.length;
    clock.ahead += 60_000;
    await until(() => proxy.requests.length > before + 10);
  }
  proxy.fault = () => undefined;
  await expectSettledOnce(opened, 200);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(1);
});

test('a replacement offers 50 % more if the node requires it', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  addChamber(forum, 1, []);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => opened.inPool(1));
  const [first] = forum.facts('relay.commit_submitted');
  proxy.fault = (method, [raw]) => {
    if (method !== 'eth_sendRawTransaction' || raw === first?.rawTransaction) return undefined;
    const isEnough = feeOf(raw) * 2n >= feeOf(first?.rawTransaction) * 3n;
    return isEnough ? undefined : { kind: 'error', message: 'replacement transaction underpriced' };
  };
  opened.clock.ahead += FEE_BUMP_MILLIS;
  const bytes = (one: RelayTransaction | undefined) => feeOf(one?.rawTransaction);
  await until(() => bytes(forum.facts('relay.commit_submitted').at(-1)) * 2n >= bytes(first) * 3n);
  await until(async () => (await rpc.request('eth_getTransactionByHash', [first?.txHash])) === null);
  await opened.automine(true);
  await expectSettledOnce(opened);
});

test('a transaction that the RPC acknowledged and forgot is sent again with a higher fee', async () => {
  const { forum } = opened;
  proxy.fault = (method) => {
    const isFirst = forum.facts('relay.commit_submitted').length === 1;
    return method === 'eth_sendRawTransaction' && isFirst
      ? { kind: 'result', result: `0x${'00'.repeat(32)}` }
      : undefined;
  };
  addChamber(forum, 1, IDEA);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => proxy.requests.filter((method) => method === 'eth_sendRawTransaction').length > 2);
  opened.clock.ahead += FEE_BUMP_MILLIS;
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted').map(({ nonce }) => nonce)).toEqual([0, 0]);
});

test('a transaction that the pool dropped but the RPC still knows is replaced with a higher fee', async () => {
  const { forum, rpc } = opened;
  await opened.automine(false);
  addChamber(forum, 1, IDEA);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => opened.inPool(1));
  const [first] = forum.facts('relay.commit_submitted');
  proxy.fault = (method, [raw]) =>
    method === 'eth_sendRawTransaction' && raw === first?.rawTransaction
      ? { kind: 'error', message: 'already known' }
      : undefined;
  await rpc.request('anvil_dropAllTransactions', []);
  await opened.automine(true);
  opened.clock.ahead += FEE_BUMP_MILLIS;
  await expectSettledOnce(opened);
});

test('a minimum tip above the RPC’s suggestions raises an alert until the RPC suggests enough', async () => {
  const { forum } = opened;
  const minimum = 25n * GWEI;
  proxy.fault = (method, [raw]) => {
    const isTooLow = method === 'eth_sendRawTransaction' && (decode(raw).maxPriorityFeePerGas ?? 0n) < minimum;
    return isTooLow
      ? { kind: 'error', message: `transaction gas price below minimum: minimum needed ${minimum}` }
      : undefined;
  };
  addChamber(forum, 1, IDEA);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toBe('chamber 1: the RPC rejects a fee far above the one that it suggests');
  const { fault } = proxy;
  proxy.fault = (method, params) =>
    method === 'eth_maxPriorityFeePerGas' ? { kind: 'result', result: '0x5d21dba00' } : fault(method, params);
  await expectSettledOnce(opened);
  await until(() => relayer.status().ok);
});

test('a spike of the base fee does not block the queue: fees are raised nonce by nonce', async () => {
  const { forum } = opened;
  await opened.automine(false);
  for (const chamberId of [1, 2, 3]) addChamber(forum, chamberId, []);
  opened.relayer();
  await until(() => opened.inPool(3));
  await spike(100n * GWEI);
  await opened.automine(true);
  await expectSettledOnce(opened, 1_000);
  const nonces = forum.facts('chamber.committed').length;
  expect(nonces).toBe(3);
  const fees = forum.facts('relay.commit_submitted').map(({ rawTransaction }) => feeOf(rawTransaction));
  for (const fee of fees) expect(fee).toBeLessThan(1_000n * GWEI);
});

test('during a spike that the account can’t afford, the relayer keeps its affordable transaction and waits', async () => {
  const { forum, rpc, config } = opened;
  await opened.automine(false);
  addChamber(forum, 1, []);
  const relayer = opened.relayer();
  await until(() => opened.inPool(1));
  const { gas = 0n, maxFeePerGas = 0n } = parseTransaction(
    forum.facts('relay.commit_submitted')[0]?.rawTransaction ?? '0x',
  );
  const { address } = openAccount(config.privateKey);
  await rpc.request('anvil_setBalance', [address, `0x${(2n * gas * maxFeePerGas).toString(16)}`]);
  await spike(100n * GWEI);
  opened.clock.ahead += FEE_BUMP_MILLIS;
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(/insufficient funds/);
  await rpc.request('anvil_dropAllTransactions', []);
  await spike(GWEI);
  await opened.automine(true);
  await expectSettledOnce(opened);
  await until(() => relayer.status().ok);
  for (const { rawTransaction } of forum.facts('relay.commit_submitted')) {
    expect(feeOf(rawTransaction)).toBeLessThanOrEqual(2n * maxFeePerGas);
  }
});

/** Mines a block with this base fee, without transactions that pay less. */
async function spike(baseFee: bigint): Promise<void> {
  await opened.rpc.request('anvil_setNextBlockBaseFeePerGas', [`0x${baseFee.toString(16)}`]);
  await opened.rpc.request('evm_mine', []);
}

function feeOf(rawTransaction: unknown): bigint {
  return decode(rawTransaction).maxFeePerGas ?? 0n;
}

function decode(rawTransaction: unknown) {
  return parseTransaction(rawTransaction as `0x${string}`);
}
