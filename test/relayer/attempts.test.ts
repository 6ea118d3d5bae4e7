// Tests the attempt that follows a failed one.
import { beforeEach, expect, test } from 'vitest';
import { decodeTransaction } from '../../src/relayer/transactions.ts';
import { addChamber } from './chambers.ts';
import { expectSettledOnce, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});

/** Less than any commitment needs. */
const TOO_LITTLE_GAS = '0x7530';

test('a transaction that ran out of gas is followed by one with twice as much gas, whatever the node estimates', async () => {
  const { forum, proxy } = opened;
  proxy.fault = (method) => (method === 'eth_estimateGas' ? { kind: 'result', result: TOO_LITTLE_GAS } : undefined);
  addChamber(forum, 1, []);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await expectSettledOnce(opened);
  const [first, second, ...others] = forum.facts('relay.commit_submitted').map((each) => decodeTransaction(each).gas);
  expect([second, others]).toEqual([2n * (first ?? 0n), []]);
  expect(relayer.spending()).toMatchObject({ transactions: 2, reverts: 1, attemptsMax: 0 });
  expect(relayer.spending().ether).toBeGreaterThan(0);
});
