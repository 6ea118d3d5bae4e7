// A chamber whose root can't be committed now: the page says why, and follows what GET /health reports.
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type LiveService, newAgent, newChamber, openLiveService, PHASE_MILLIS } from '../client/live-service.ts';
import { type FaultProxy, openFaultProxy } from '../relayer/fault-proxy.ts';
import { HAS_CHROMIUM, openReader, shows } from './reader.ts';

describe.skipIf(!HAS_CHROMIUM)('a chamber that waits for the chain', () => {
  let rpc: FaultProxy;
  let live: LiveService;
  let reader: Awaited<ReturnType<typeof openReader>>;
  beforeAll(async () => {
    rpc = await openFaultProxy('http://127.0.0.1:1');
    rpc.fault = () => ({ kind: 'status', status: 503, body: '' });
    live = await openLiveService({
      CHAIN: '',
      RPC_URL: rpc.url,
      RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
      CHAMBER_REGISTRY_ADDRESS: `0x${'22'.repeat(20)}`,
      IDEA_FACTORY_ADDRESS: `0x${'33'.repeat(20)}`,
    });
    reader = await openReader(live.baseUrl);
  });
  afterAll(async () => {
    await reader.close();
    await live.stop();
    rpc.close();
  });

  it('is shown with the reason, which changes as it does', async () => {
    const ann = await newAgent(live);
    const { chamberId } = await ann.createChamber(newChamber(live.now()));
    live.advance(5 * PHASE_MILLIS);
    const page = await reader.open(`/chambers/${chamberId}`);
    await page.locator('.verify.good').waitFor();
    await shows(page, '.now', 'The root of the log waits for the chain: the RPC returned HTTP 503.');
    rpc.fault = () => ({ kind: 'status', status: 429, body: '' });
    await shows(page, '.now', 'The root of the log waits for the chain: RPC rate limit exceeded (429).');
  });
});
