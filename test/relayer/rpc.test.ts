import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { openRpc, RpcError } from '../../src/relayer/rpc.ts';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { API_KEY, type Fault, type FaultProxy, openFaultProxy } from './fault-proxy.ts';

/** Opens a proxy that responds to every request with the fault. */
async function openFaulty(fault: Fault): Promise<FaultProxy> {
  const proxy = await openFaultProxy('http://127.0.0.1:9');
  atEnd(() => proxy.close());
  proxy.fault = () => fault;
  return proxy;
}

test('an error that quotes the URL or its key is redacted', async () => {
  const proxy = await openFaulty({ kind: 'hang' });
  proxy.fault = () => ({ kind: 'error', message: `no project ${API_KEY} at ${proxy.url}` });
  const error = await failureOf(proxy.url);
  expect(error).toMatchObject({ kind: 'rejected', message: 'eth_chainId: no project … at …' });
});

test.each([
  'EVM error NotActivated',
  'EVM error OpcodeNotFound',
  'invalid opcode: PUSH0',
  'invalid opcode: opcode 0x5c not defined',
  'VM execution error: BadInstruction 5f',
])('an error about an instruction that the chain lacks is explained: %s', async (message) => {
  const proxy = await openFaulty({ kind: 'error', message });
  expect((await failureOf(proxy.url)).message).toBe(
    `eth_chainId: ${message}; the contract uses an instruction that the chain lacks: it was compiled for a later EVM upgrade`,
  );
});

test.each(['invalid opcode: INVALID', 'execution reverted'])(
  'an ordinary failure of a contract is not explained as a missing instruction: %s',
  async (message) => {
    const proxy = await openFaulty({ kind: 'error', message });
    expect((await failureOf(proxy.url)).message).toBe(`eth_chainId: ${message}`);
  },
);

const ECHOES = [
  'ann-the-user',
  'pass%2Fword',
  'pass/word',
  'k%2Be%2By-in-the-path',
  'k+e+y-in-the-path',
  'key%20in+query',
];
test.each(ECHOES)('an error that echoes %s of the URL is redacted', async (echo) => {
  const proxy = await openFaulty({ kind: 'error', message: `no project <${echo}> here` });
  const { port } = new URL(proxy.url);
  const url = `http://ann-the-user:pass%2Fword@127.0.0.1:${port}/v2/k%2Be%2By-in-the-path?key=key%20in+query`;
  expect((await failureOf(url)).message).toBe('eth_chainId: no project <…> here');
});

test('a password with an invalid percent sign is used unchanged', async () => {
  const proxy = await openFaulty({ kind: 'result', result: '0x1' });
  const { port } = new URL(proxy.url);
  expect(await openRpc(`http://ann:100%zz@127.0.0.1:${port}/`).request('eth_chainId', [])).toBe('0x1');
});

test.each([500, 503, 400])('a JSON-RPC error with HTTP status %d is treated as the node’s error', async (status) => {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    error: { code: 3, message: 'execution reverted', data: '0xab' },
  });
  const proxy = await openFaulty({ kind: 'status', status, body });
  const error = await failureOf(proxy.url);
  expect(error).toMatchObject({ kind: 'rejected', message: 'eth_chainId: execution reverted', data: '0xab', code: 3 });
});

test.each(['', 'oops', '<html></html>', '{"jsonrpc":"2.0","id":1,"result":"0x1"}', '{"error":"no"}'])(
  'a response with HTTP status 500 and the body %j is not treated as a JSON-RPC error',
  async (body) => {
    const proxy = await openFaulty({ kind: 'status', status: 500, body });
    expect(await failureOf(proxy.url)).toMatchObject({ kind: 'unavailable', message: 'the RPC returned HTTP 500' });
  },
);

test('a long error is truncated', async () => {
  const proxy = await openFaulty({ kind: 'error', message: 'x'.repeat(10_000) });
  expect((await failureOf(proxy.url)).message.length).toBeLessThan(400);
});

test('user and password of the URL are sent as a header', async () => {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.end('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.close().closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  await openRpc(`http://ann:pass%20word@127.0.0.1:${port}/`).request('eth_chainId', []);
  expect(seen).toEqual([`Basic ${Buffer.from('ann:pass word').toString('base64')}`]);
});

test('closing aborts pending requests', async () => {
  const proxy = await openFaulty({ kind: 'hang' });
  const rpc = openRpc(proxy.url);
  const failure = rpc.request('eth_chainId', []).catch((error: unknown) => error);
  await until(() => proxy.requests.length > 0);
  rpc.close();
  expect(await failure).toMatchObject({ kind: 'unavailable' });
});

async function failureOf(url: string): Promise<RpcError> {
  const error: unknown = await openRpc(url)
    .request('eth_chainId', [])
    .catch((thrown: unknown) => thrown);
  if (error instanceof RpcError) return error;
  throw new Error('the request did not fail');
}
