import { beforeEach, expect, test } from 'vitest';
import type { Logs } from '../../src/relayer/chain-client.ts';
import { LogSearch } from '../../src/relayer/log-search.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import { atEnd } from '../kit/temporary.ts';
import { type Fault, type FaultProxy, openFaultProxy } from './fault-proxy.ts';

const ADDRESS = `0x${'12'.repeat(20)}` as const;
const HASH = `0x${'34'.repeat(32)}` as const;
const HEAD = 9_999;
const contract = { address: ADDRESS, topics: [] };
const TOO_WIDE: Fault = { kind: 'error', message: 'query exceeds the limit' };

let proxy: FaultProxy;
let search: LogSearch;
/** The block range of each request, and the block that has the event. */
let requested: (readonly [from: number, to: number])[];
let eventBlock: number;
let blocksMax: number;
let rejection: Fault;
beforeEach(async () => {
  [requested, eventBlock, blocksMax, rejection] = [[], 5_000, Number.POSITIVE_INFINITY, TOO_WIDE];
  proxy = await openFaultProxy('http://127.0.0.1:9');
  const rpc = openRpc(proxy.url, { timeoutMillis: 500 });
  atEnd(() => {
    rpc.close();
    proxy.close();
  });
  search = new LogSearch(rpc);
  proxy.fault = (method, [filter]) => (method === 'eth_getLogs' ? respondTo(filter as Filter) : head());
});

interface Filter {
  readonly fromBlock: string;
  readonly toBlock: string;
}

function head(): Fault {
  return { kind: 'result', result: { number: `0x${HEAD.toString(16)}`, hash: HASH, timestamp: '0x1' } };
}

function respondTo({ fromBlock, toBlock }: Filter): Fault {
  const [from, to] = [Number(fromBlock), Number(toBlock)];
  requested.push([from, to]);
  if (to - from + 1 > blocksMax) return rejection;
  const isFound = from <= eventBlock && eventBlock <= to;
  const log = { address: ADDRESS, topics: [], data: '0x', transactionHash: HASH, blockHash: HASH, blockNumber: '0x1' };
  return { kind: 'result', result: isFound ? [log] : [] };
}

const find = (logs: Logs) => logs[0]?.transactionHash;

test('a node that serves all blocks gets one request', async () => {
  expect(await search.find(contract, find)).toBe(HASH);
  expect(requested).toEqual([[0, HEAD]]);
});

test.each<readonly [string, Fault]>([
  ['rejects', TOO_WIDE],
  ['times out over', { kind: 'hang' }],
  ['returns HTTP 504 for', { kind: 'status', status: 504, body: '' }],
])(
  'windows shrink to ten blocks for a node that %s larger ranges, newest first and without a gap',
  async (_title, fault) => {
    [rejection, blocksMax, eventBlock] = [fault, 10, HEAD - 35];
    expect(await search.find(contract, find)).toBe(HASH);
    const served = requested.filter(([from, to]) => to - from + 1 <= blocksMax);
    expect(served).toEqual([0, 1, 2, 3].map((window) => [HEAD - 10 * window - 9, HEAD - 10 * window]));
  },
);

test('a search fails if the node rejects even ten blocks', async () => {
  blocksMax = 9;
  await expect(search.find(contract, find)).rejects.toMatchObject({ kind: 'rejected' });
});

test('the next search begins with the window that the node accepted last', async () => {
  [blocksMax, eventBlock] = [2_000, HEAD];
  await search.find(contract, find);
  requested = [];
  await search.find(contract, find);
  expect(requested).toEqual([[HEAD - 1_999, HEAD]]);
});

test('a search that finds nothing reads every block once', async () => {
  [blocksMax, eventBlock] = [2_000, -1];
  expect(await search.find(contract, find)).toBeUndefined();
  const served = requested.filter(([from, to]) => to - from + 1 <= blocksMax);
  expect(served).toEqual([0, 1, 2, 3, 4].map((window) => [HEAD - 2_000 * window - 1_999, HEAD - 2_000 * window]));
});
