// Tests that jobs are independent: failing requests of one job do not delay others.
import { beforeEach, expect, test } from 'vitest';
import { sendRaw } from '../../src/relayer/chain-client.ts';
import { commitChamberCall } from '../../src/relayer/contracts.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { Fault } from './fault-proxy.ts';
import {
  expectSettledOnce,
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

const CHAMBERS = [2, 3, 4, 5, 6];
const ALERT_MILLIS = 31_000;
const NODE_ERROR = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no luck today"}}';

const FAULTS: readonly (readonly [string, Fault, string])[] = [
  ['hangs', { kind: 'hang' }, 'RPC request timed out'],
  ['resets the connection', { kind: 'reset' }, 'RPC unreachable (UND_ERR_SOCKET)'],
  [
    'returns HTTP 500 with an error of the node',
    { kind: 'status', status: 500, body: NODE_ERROR },
    'eth_estimateGas: no luck today',
  ],
  ['returns HTTP 503', { kind: 'status', status: 503, body: '' }, 'the RPC returned HTTP 503'],
];

test.each(FAULTS)(
  'an RPC that %s for one job does not delay others, and raises an alert that names the job',
  async (_title, fault, reason) => {
    const { forum, proxy, clock } = opened;
    for (const chamberId of [1, ...CHAMBERS]) addChamber(forum, chamberId, [{ ticker: 'T', backers: 1 }]);
    const failing = commitChamberCall(1, forum.root(1));
    let count = 0;
    proxy.fault = (method, [call]) => {
      const isFailing = method === 'eth_estimateGas' && (call as { readonly data: string }).data === failing;
      if (isFailing) count++;
      return isFailing ? fault : undefined;
    };
    const relayer = opened.relayer({ rpcUrl: proxy.url });
    await until(() => forum.facts('idea.deployed').length === CHAMBERS.length);
    expect(forum.state(1).settlement.commitSubmitted).toEqual([]);
    await until(() => count >= 2);
    clock.ahead += ALERT_MILLIS;
    await until(() => !relayer.status().ok);
    expect(relayer.status()).toMatchObject({ reason: `chamber 1 (RPC): ${reason}`, pending: 1 });
    proxy.fault = () => undefined;
    await expectSettledOnce(opened, 1_000);
    await until(() => relayer.status().ok);
  },
);

test('a failing job is retried at growing intervals', async () => {
  const { forum, proxy, clock } = opened;
  addChamber(forum, 1, []);
  const times: number[] = [];
  proxy.fault = (method) => {
    if (method !== 'eth_estimateGas') return undefined;
    times.push(clock.ahead);
    return { kind: 'error', message: 'no luck today' };
  };
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => {
    clock.ahead += 250;
    return clock.ahead > 60_000;
  });
  const [next = 0, last = 0] = [times.at(-2), times.at(-1)];
  expect(times.length).toBeGreaterThan(4);
  expect(last - next).toBeGreaterThan(10_000);
});

test('a log search that times out does not delay other chambers', async () => {
  const { forum, rpc, proxy } = opened;
  addChamber(forum, 1, []);
  await sendRaw(rpc, await signOutsideLog(opened, { to: 'registry', data: commitChamberCall(1, forum.root(1)) }));
  await until(async () => (await onChain(opened, 1)).commits.length === 1);
  for (const chamberId of CHAMBERS) addChamber(forum, chamberId, []);
  proxy.fault = (method) => (method === 'eth_getLogs' ? { kind: 'hang' } : undefined);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => forum.facts('chamber.committed').length === CHAMBERS.length);
  expect(forum.state(1).settlement.committed).toBeNull();
  proxy.fault = () => undefined;
  await until(() => {
    opened.clock.ahead += 1_000;
    return isSettled(forum);
  });
});
