// Tests the page of a chamber whose root can't be committed: it shows the reason, and follows GET /health.
import { afterAll, describe, it } from 'vitest';
import { newAgent, newChamber, PHASE_MILLIS } from '../client/live-service.ts';
import { type FaultProxy, openFaultProxy } from '../relayer/fault-proxy.ts';
import { expectShown, HAS_CHROMIUM, readerOfService } from './reader.ts';

describe.skipIf(!HAS_CHROMIUM)('a chamber that waits for the chain', () => {
  let rpc: FaultProxy;
  const reader = readerOfService(async () => {
    rpc = await openFaultProxy('http://127.0.0.1:1');
    rpc.fault = () => ({ kind: 'status', status: 503, body: '' });
    return {
      CHAIN: '',
      RPC_URL: rpc.url,
      RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
      CHAMBER_REGISTRY_ADDRESS: `0x${'22'.repeat(20)}`,
      IDEA_FACTORY_ADDRESS: `0x${'33'.repeat(20)}`,
    };
  });
  afterAll(() => rpc.close());

  it('the page of a chamber that waits for the chain shows the reason, and each new reason', async () => {
    const ann = await newAgent(reader.live);
    const { chamberId } = await ann.createChamber(newChamber(reader.live.now()));
    reader.live.advance(5 * PHASE_MILLIS);
    const page = await reader.open(`/chambers/${chamberId}`);
    await page.locator('.verify.good').waitFor();
    await expectShown(page, '.now', 'The root of the log waits for the chain: the RPC returned HTTP 503.');
    rpc.fault = () => ({ kind: 'status', status: 429, body: '' });
    await expectShown(page, '.now', 'The root of the log waits for the chain: RPC rate limit exceeded (429).');
  });
});
