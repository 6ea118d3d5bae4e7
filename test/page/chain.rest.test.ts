// The page reads the chain that its reader names: a real chain, an honest service, and an altered line.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { playChamber } from '../client/play-chamber.ts';
import { expectShown, HAS_CHROMIUM, readerOfService } from './reader.ts';

describe.skipIf(!HAS_CHROMIUM)('a reader who names an RPC and a registry', () => {
  const reader = readerOfService(() => ({ CHAIN: '' }));
  let rpc: string;
  let openRpc: Server;
  let registry: string;
  beforeAll(async () => {
    await playChamber(reader.live);
    const { chain } = await reader.live.forum.health();
    openRpc = await openToBrowsers(chain?.rpcUrl ?? '');
    rpc = `http://127.0.0.1:${(openRpc.address() as AddressInfo).port}`;
    registry = chain?.registryAddress ?? '';
  }, 180_000);
  afterAll(() => void openRpc.close());

  it('the page finds the root and the log’s claims on the chain', async () => {
    const page = await reader.open('/chambers/1', { origins: [reader.live.baseUrl, new URL(rpc).origin] });
    await page.getByText('Ask the chain too').click();
    await page.getByLabel('RPC').fill(rpc);
    await page.getByLabel('Registry').fill(registry);
    await page.getByRole('button', { name: 'Ask' }).click();
    await expectShown(page, '.chain .checks li', '✓ the registry on the chain holds the root (1)');
    await expectShown(page, '.chain .checks li', '✓ the chain confirms the commitment and the tokens (2)');
  });

  it('the page reports that the root on the chain differs from that of altered lines', async () => {
    const query = new URLSearchParams({ rpc, registry });
    const page = await reader.open(`/chambers/1?${query}`, {
      alter: (line) => line.replace('"bps":10000', '"bps":9999'),
      origins: [reader.live.baseUrl, new URL(rpc).origin],
    });
    await expectShown(
      page,
      '.findings',
      /the registry holds 0x[0-9a-f]{64} for chamber 1, but the root of the moves is 0x/,
    );
  });

  it('the page reports why a registry or RPC could not be read', async () => {
    const openWith = (registry: string, rpc: string) =>
      reader.open(`/chambers/1?${new URLSearchParams({ rpc, registry })}`, {
        origins: [reader.live.baseUrl, new URL(rpc).origin],
        problems: /ERR_UNSAFE_PORT/,
      });
    const nobody = `0x${'11'.repeat(20)}`;
    await expectShown(await openWith(nobody, rpc), '.chain', `the chain has no ChamberRegistry at ${nobody}`);
    await expectShown(await openWith(registry, 'http://127.0.0.1:1'), '.chain', 'the RPC of 127.0.0.1:1 failed');
  });
});

/** Serves the development chain as a public RPC that allows every origin. */
async function openToBrowsers(rpcUrl: string): Promise<Server> {
  const server = createServer(async (request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*').setHeader('Access-Control-Allow-Headers', 'content-type');
    const body = await text(request);
    if (request.method === 'OPTIONS') return void response.end();
    const headers = { 'Content-Type': 'application/json' };
    response.end(await (await fetch(rpcUrl, { method: 'POST', headers, body })).text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
