// Tests that a transaction never offers more per gas than the limit, whatever the node suggests.
import { beforeEach, expect, test } from 'vitest';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { Fault } from './fault-proxy.ts';
import { expectSettledOnce, feesOf, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
  addChamber(opened.forum, 1, []);
});

const GWEI = 1_000_000_000n;
const FEE_BUMP_MILLIS = 31_000;
const inGwei = (gwei: bigint): Fault => ({ kind: 'result', result: `0x${(gwei * GWEI).toString(16)}` });
const REJECTED: Fault = { kind: 'error', message: 'method not found' };

test('the relayer waits with an alert while the suggested tip is far above recent fees', async () => {
  const { forum, proxy } = opened;
  proxy.fault = (method) => (method === 'eth_maxPriorityFeePerGas' ? inGwei(10_000n) : undefined);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(
    /^fee: the chain asks for 1000\d(\.\d+)? gwei per gas, above the limit of 50 \(FEE_MAX_GWEI\)$/,
  );
  expect(forum.facts('relay.commit_submitted')).toEqual([]);
  proxy.fault = () => undefined;
  await expectSettledOnce(opened, 200);
  await until(() => relayer.status().ok);
  expect(feesOf(forum.facts('relay.commit_submitted')[0]).maxPriorityFeePerGas).toBe(GWEI);
});

test('the relayer waits while the base fee is above FEE_MAX_GWEI, and then offers at most this limit', async () => {
  const { forum, rpc } = opened;
  const feeMaxWei = 3n * GWEI;
  await spike(100n * GWEI);
  const relayer = opened.relayer({ feeMaxWei });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(/^fee: .* above the limit of 3 \(FEE_MAX_GWEI\)$/);
  await spike((3n * GWEI) / 2n);
  await rpc.request('anvil_setNextBlockBaseFeePerGas', ['0x1']);
  await expectSettledOnce(opened, 200);
  expect(feesOf(forum.facts('relay.commit_submitted')[0]).maxFeePerGas).toBe(feeMaxWei);
});

test('no raised fee is above the limit', async () => {
  const { forum, clock } = opened;
  await opened.automine(false);
  const feeMaxWei = 4n * GWEI;
  const relayer = opened.relayer({ feeMaxWei });
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  await until(() => {
    clock.ahead += FEE_BUMP_MILLIS;
    return !relayer.status().ok;
  });
  expect(relayer.status().reason).toMatch(/^fee: .* above the limit of 4 \(FEE_MAX_GWEI\)$/);
  const offered = forum.facts('relay.commit_submitted').map((each) => feesOf(each).maxFeePerGas);
  expect(offered.length).toBeGreaterThan(1);
  for (const fee of offered) expect(fee).toBeLessThanOrEqual(feeMaxWei);
  await opened.automine(true);
  await expectSettledOnce(opened);
  await until(() => relayer.status().ok);
});

test('if the RPC suggests no tip, the tip comes from recent blocks', async () => {
  const { forum, rpc, proxy } = opened;
  const from = await firstAccount();
  const tip = `0x${(7n * GWEI).toString(16)}`;
  const fees = { maxPriorityFeePerGas: tip, maxFeePerGas: `0x${(20n * GWEI).toString(16)}` };
  for (let block = 0; block < 3; block++) await rpc.request('eth_sendTransaction', [{ from, to: from, ...fees }]);
  proxy.fault = (method) => (method === 'eth_maxPriorityFeePerGas' ? REJECTED : undefined);
  opened.relayer({ rpcUrl: proxy.url });
  await expectSettledOnce(opened);
  expect(feesOf(forum.facts('relay.commit_submitted')[0]).maxPriorityFeePerGas).toBe(7n * GWEI);
});

test('if recent blocks have no tip either, the configured tip is used; without one the relayer stops', async () => {
  const { forum, proxy } = opened;
  const unknown = ['eth_maxPriorityFeePerGas', 'eth_feeHistory'];
  proxy.fault = (method) => (unknown.includes(method) ? REJECTED : undefined);
  const halted = opened.relayer({ rpcUrl: proxy.url });
  await until(() => !halted.status().ok);
  expect(halted.status().reason).toMatch(/^chain: the RPC suggests no tip .*: set the tip to offer \(FEE_TIP_GWEI\)$/);
  await halted.stop();
  opened.relayer({ rpcUrl: proxy.url, tipWei: 2n * GWEI });
  await expectSettledOnce(opened);
  expect(feesOf(forum.facts('relay.commit_submitted')[0]).maxPriorityFeePerGas).toBe(2n * GWEI);
});

async function firstAccount(): Promise<string> {
  const [first = ''] = (await opened.rpc.request('eth_accounts', [])) as readonly string[];
  return first;
}

/** Mines a block with this base fee. */
async function spike(baseFee: bigint): Promise<void> {
  await opened.rpc.request('anvil_setNextBlockBaseFeePerGas', [`0x${baseFee.toString(16)}`]);
  await opened.rpc.request('evm_mine', []);
}
