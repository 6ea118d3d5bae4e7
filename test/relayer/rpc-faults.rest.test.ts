import { beforeEach, expect, test } from 'vitest';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { API_KEY, type Fault, type FaultProxy } from './fault-proxy.ts';
import { isSettled, onChain, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
let proxy: FaultProxy;
beforeEach(async () => {
  // Runs after the relayers have stopped.
  atEnd(() => {
    const log = opened.lines.join('\n');
    for (const secret of [API_KEY, proxy.url, opened.config.privateKey]) expect(log).not.toContain(secret);
  });
  opened = await openRelayerChain();
  proxy = opened.proxy;
});

const HEARTBEAT_MILLIS = 5_000;
const OUTAGE_MILLIS_MAX = 30_000;
const HTML = '<html>502 Bad Gateway</html>';
const FAULTS: readonly (readonly [string, Fault])[] = [
  ['does not respond in time', { kind: 'hang' }],
  ['resets connections', { kind: 'reset' }],
  ['returns HTTP 429', { kind: 'status', status: 429, body: '{"jsonrpc":"2.0","id":1,"result":"0x1"}' }],
  ['returns HTTP 500', { kind: 'status', status: 500, body: 'oops' }],
  ['returns HTML', { kind: 'status', status: 200, body: HTML }],
  ['returns HTTP 403 with HTML', { kind: 'status', status: 403, body: HTML }],
  ['returns null', { kind: 'result', result: null }],
  ['returns numbers instead of quantities', { kind: 'result', result: 7 }],
];

test.each(FAULTS)('an RPC that %s delays the work until it recovers', async (_title, fault) => {
  proxy.fault = () => fault;
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => proxy.requests.length >= 3 && relayer.status().reason !== undefined);
  expect(relayer.status()).toMatchObject({ ok: true, pending: 1 });
  proxy.fault = () => undefined;
  await expectOnce();
});

test('an RPC outage without pending work raises an alert after half a minute, until the RPC is back', async () => {
  const { clock, lines } = opened;
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => proxy.requests.length >= 3);
  proxy.fault = () => ({ kind: 'status', status: 503, body: '' });
  clock.ahead += HEARTBEAT_MILLIS;
  await until(() => relayer.status().reason !== undefined);
  const rest = { pending: 0, failed: 0, leads: true };
  expect(relayer.status()).toEqual({ ok: true, reason: 'the RPC returned HTTP 503', ...rest });
  clock.ahead += OUTAGE_MILLIS_MAX;
  await until(() => !relayer.status().ok);
  expect(relayer.status()).toEqual({ ok: false, reason: 'every round fails: the RPC returned HTTP 503', ...rest });
  proxy.fault = () => undefined;
  await until(() => relayer.status().ok);
  expect(relayer.status()).toEqual({ ok: true, ...rest });
  expect(lines.map((line) => JSON.parse(line).message)).toEqual([
    'round failed, relayer retrying',
    'relayer alert raised',
    'relayer alert cleared',
    'relayer resumed',
  ]);
});

test.each(FAULTS.slice(1, 4))(
  'an RPC that %s at every second request delays the work but repeats nothing',
  async (_title, fault) => {
    let count = 0;
    proxy.fault = () => (count++ % 2 === 0 ? undefined : fault);
    addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
    const relayer = opened.relayer({ rpcUrl: proxy.url });
    await until(() => proxy.requests.length >= 8);
    proxy.fault = () => undefined;
    await expectOnce();
    await until(() => relayer.status().reason === undefined);
  },
);

test('a lost response to a transaction causes no second transaction', async () => {
  let lost = 0;
  proxy.fault = (method) => (method === 'eth_sendRawTransaction' && lost++ < 2 ? { kind: 'lost' } : undefined);
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer({ rpcUrl: proxy.url });
  await expectOnce();
});

test('late receipts do not count as failures', async () => {
  proxy.fault = (method) => (method === 'eth_getTransactionReceipt' ? { kind: 'result', result: null } : undefined);
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => proxy.requests.filter((method) => method === 'eth_getTransactionByHash').length > 2);
  opened.clock.ahead += 60_000;
  const before = proxy.requests.length;
  await until(() => proxy.requests.length > before + 20);
  expect(opened.forum.facts('relay.commit_submitted')).toHaveLength(1);
  proxy.fault = () => undefined;
  await expectOnce();
});

test('an RPC of another chain stops the relayer with an alert, and nothing is signed', async () => {
  proxy.fault = (method) => (method === 'eth_chainId' ? { kind: 'result', result: '0x1' } : undefined);
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toBe('chain: the RPC serves chain 1, expected 31337 (CHAIN_ID)');
  expect(opened.forum.facts('relay.commit_submitted')).toEqual([]);
  expect(proxy.requests).not.toContain('eth_sendRawTransaction');
  proxy.fault = () => undefined;
  await until(() => isSettled(opened.forum));
  expect(relayer.status().ok).toBe(true);
});

test('an RPC that changes its chain stops the relayer until the chain is back', async () => {
  await opened.automine(false);
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  const { chainId: _, ...unnamed } = opened.config;
  const relayer = opened.relayer({ ...unnamed, rpcUrl: proxy.url });
  await until(() => opened.forum.facts('relay.commit_submitted').length === 1);
  proxy.fault = (method) => (method === 'eth_chainId' ? { kind: 'result', result: '0xa' } : undefined);
  await until(() => !relayer.status().ok);
  proxy.fault = () => undefined;
  await opened.automine(true);
  await expectOnce();
});

test('an address without code stops the relayer', async () => {
  addChamber(opened.forum, 1, []);
  const relayer = opened.relayer({ registryAddress: `0x${'12'.repeat(20)}` });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(/^chain: no contract at 0x12.* \(CHAMBER_REGISTRY_ADDRESS\)$/);
  expect(opened.forum.facts('relay.commit_submitted')).toEqual([]);
});

test('an address that loses its code stops the relayer until the code is back', async () => {
  const { forum, rpc, config } = opened;
  const { registryAddress } = config;
  addChamber(forum, 1, []);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => isSettled(forum));
  const code = await rpc.request('eth_getCode', [registryAddress, 'latest']);
  await rpc.request('anvil_setCode', [registryAddress, '0x']);
  await rpc.request('evm_mine', []);
  opened.clock.ahead += 6_000;
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(/^chain: no contract at 0x.* \(CHAMBER_REGISTRY_ADDRESS\)$/);
  addChamber(forum, 2, [{ ticker: 'TWO', backers: 1 }]);
  const before = proxy.requests.length;
  await until(() => proxy.requests.length > before + 8);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(1);
  await rpc.request('anvil_setCode', [registryAddress, code]);
  await rpc.request('evm_mine', []);
  await until(() => isSettled(forum));
  expect(relayer.status().ok).toBe(true);
});

test('an idle relayer makes three requests in each heartbeat', async () => {
  addChamber(opened.forum, 1, []);
  opened.relayer({ rpcUrl: proxy.url });
  await until(() => isSettled(opened.forum));
  for (let look = 0; look < 2; look++) await awaitHeartbeat();
  const before = proxy.requests.length;
  await awaitHeartbeat();
  expect(proxy.requests.slice(before).sort()).toEqual([
    'eth_chainId',
    'eth_getBlockByNumber',
    'eth_getTransactionCount',
  ]);
});

async function awaitHeartbeat(): Promise<void> {
  const before = proxy.requests.length;
  opened.clock.ahead += 6_000;
  await until(() => proxy.requests.length >= before + 3);
}

test('a log with transactions of another chain stops the relayer', async () => {
  addChamber(opened.forum, 1, []);
  const foreign = { chainId: 5, nonce: 0, txHash: `0x${'ab'.repeat(32)}`, rawTransaction: '0x00' } as const;
  await opened.forum.record(1, { type: 'relay.commit_submitted', payload: foreign });
  const relayer = opened.relayer();
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toContain('serves chain 31337, expected 5');
});

/** Expects the chamber to be settled with one transaction for each job. */
async function expectOnce(): Promise<void> {
  const { forum } = opened;
  await until(() => isSettled(forum));
  expect(forum.facts('relay.commit_submitted')).toHaveLength(1);
  expect(forum.facts('relay.deploy_submitted')).toHaveLength(1);
  expect(await onChain(opened, 1)).toEqual({
    commits: forum.facts('chamber.committed').map(({ txHash }) => txHash),
    deployments: forum.facts('idea.deployed').map(({ txHash }) => txHash),
  });
}
