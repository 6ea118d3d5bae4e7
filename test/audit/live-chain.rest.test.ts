// A chamber that settles during its audit is sound.
import { expect, test, vi } from 'vitest';
import { auditService } from '../../src/audit/audit.ts';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { newChamber, openLiveService, PHASE_MILLIS, REGISTRATION } from '../client/live-service.ts';
import { atEnd } from '../kit/temporary.ts';
import { openTamperingProxy } from './tampering-proxy.ts';

test('a root committed after the lines were read is not compared with them', { timeout: 120_000 }, async () => {
  const live = await openLiveService({ CHAIN: '' });
  atEnd(live.stop);
  const { chain: info } = await live.forum.health();
  const chain = new AuditedChain(info?.rpcUrl ?? '', [info?.registryAddress ?? '0x']);
  const bob = Agent.generate(new ForumClient(live.baseUrl, live.sharedTime));
  await bob.register(REGISTRATION);
  const { chamberId } = await bob.createChamber(newChamber(live.now()));
  await bob.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await bob.propose(chamberId, { name: 'Rain', ticker: 'RAIN' });
  live.advance(2 * PHASE_MILLIS);
  await bob.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  live.advance(PHASE_MILLIS);
  let settled: Promise<void> | undefined;
  const settle = async () => {
    await bob.reveal(chamberId);
    live.advance(PHASE_MILLIS);
    const isCommitted = async () => (await live.forum.chamber(chamberId)).merkleRoot !== null;
    await vi.waitUntil(isCommitted, { timeout: 30_000, interval: 200 });
  };
  const proxy = await openTamperingProxy(live.baseUrl, live.now);
  atEnd(() => proxy.close());
  // By then the audit has compared the views.
  proxy.wait = async (path) => {
    if (!path.endsWith('/tlog-proof')) return;
    settled ??= settle();
    await settled;
  };
  const { problems, chambers } = await auditService(proxy.url, { chain, now: live.now });
  expect(settled).toBeDefined();
  expect([problems, chambers.map(({ sentence }) => sentence)]).toEqual([[], ['Sound.']]);
  expect(chambers[0]?.checks.find(({ name }) => name === 'contract')?.verdict).toBe('not evaluated');
});
