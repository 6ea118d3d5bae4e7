// A whole chamber with one member and one idea, on a live service with a chain, until its token is deployed.
import { vi } from 'vitest';
import { type LiveService, newAgent, newChamber, PHASE_MILLIS } from './live-service.ts';

export async function playChamber(live: LiveService) {
  const ann = await newAgent(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await ann.propose(chamberId, { name: 'Idea', ticker: 'IDEA' });
  live.advance(2 * PHASE_MILLIS);
  await ann.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  live.advance(PHASE_MILLIS);
  await ann.reveal(chamberId);
  await advanceChain(live);
  live.advance(PHASE_MILLIS);
  await vi.waitUntil(async () => (await live.forum.ideas()).length === 1, { timeout: 20_000 });
  return ann;
}

/** Dates the following blocks by the service's clock at the end of the reveals, so that no block is older than its contents. */
export async function advanceChain(live: LiveService): Promise<void> {
  const { chain } = await live.forum.health();
  if (!chain?.rpcUrl) return;
  const seconds = Math.ceil((live.now() + PHASE_MILLIS - Date.now()) / 1000);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'evm_increaseTime', params: [seconds] });
  await fetch(chain.rpcUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
}
