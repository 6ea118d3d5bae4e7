// Tests failing attempts that cost gas: their number is limited, and the operator is alerted.
import { beforeEach, expect, test } from 'vitest';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { isSettled, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
/** Less than any commitment needs. */
const TOO_LITTLE_GAS = '0x7530';
/** PUSH1 0, PUSH1 0, REVERT: every call reverts without a reason. */
const REVERTS = '0x60006000fd';

test('a commitment that always reverts raises an alert at its second failure, and is retried a limited number of times before a restart', async () => {
  const { forum } = opened;
  const repairRegistry = await breakRegistry();
  addChamber(forum, 2, []);
  const relayer = opened.relayer({ rpcUrl: opened.proxy.url });
  const signed = () => forum.state(2).settlement.commitSubmitted.length;
  await until(() => signed() === 1);
  expect(relayer.status().ok).toBe(true);
  await until(() => {
    forum.ahead += SECOND;
    return !relayer.status().ok;
  });
  expect(signed()).toBe(2);
  expect(relayer.status().reason).toMatch(
    /^chamber 2: 2 transactions reverted and cost 0\.0\d+ ether: the next attempts follow at growing intervals$/,
  );
  await until(() => {
    forum.ahead += 60 * SECOND;
    return relayer.status().reason?.includes('before a restart') === true;
  });
  const bound = signed();
  expect(bound).toBe(10);
  for (let look = 0; look < 20; look++) {
    forum.ahead += DAY;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(signed()).toBe(bound);
  expect(relayer.spending()).toMatchObject({ transactions: 10, reverts: 10, attemptsMax: 10, alerts: 1 });
  expect(relayer.spending().jobEtherMax).toBeCloseTo(relayer.spending().ether, 15);
  await relayer.stop();
  await repairRegistry();
  opened.relayer({ rpcUrl: opened.proxy.url });
  await until(() => signed() === bound + 1);
});

test('the pause after a revert is measured from its block, so restarts do not shorten it', async () => {
  const { forum, proxy } = opened;
  const repairRegistry = await breakRegistry();
  addChamber(forum, 2, []);
  const now = forum.now();
  forum.now = () => now;
  const signed = () => forum.state(2).settlement.commitSubmitted.length;
  for (let start = 0; start < 4; start++) {
    const relayer = opened.relayer({ rpcUrl: proxy.url });
    await until(() => signed() > 0);
    const before = proxy.requests.length;
    await until(() => proxy.requests.length > before + 25);
    await relayer.stop();
  }
  expect(signed()).toBe(1);
  await repairRegistry();
  forum.now = () => now + 10 * SECOND;
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => signed() === 2);
});

/** Waits until the relayer has accepted the registry, then makes every transaction to it revert, although every estimate succeeds. */
async function breakRegistry(): Promise<() => Promise<unknown>> {
  const { forum, proxy, rpc, config } = opened;
  addChamber(forum, 1, []);
  const relayer = opened.relayer();
  await until(() => isSettled(forum));
  await relayer.stop();
  const { registryAddress } = config;
  const code = await rpc.request('eth_getCode', [registryAddress, 'latest']);
  proxy.fault = async (method) => {
    if (method !== 'eth_estimateGas') return undefined;
    await rpc.request('anvil_setCode', [registryAddress, REVERTS]);
    return { kind: 'result', result: TOO_LITTLE_GAS };
  };
  return () => rpc.request('anvil_setCode', [registryAddress, code]);
}
