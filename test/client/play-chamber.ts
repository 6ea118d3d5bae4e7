// A whole chamber with one member and one idea, played on a stage with a chain until its token is deployed.
import { vi } from 'vitest';
import { newAgent, newChamber, PHASE_MILLIS, type Stage } from './stage.ts';

export async function playChamber(stage: Stage) {
  const ann = await newAgent(stage);
  const { chamberId } = await ann.createChamber(newChamber(stage.now()));
  await ann.joinChamber(chamberId);
  stage.advance(PHASE_MILLIS);
  await ann.propose(chamberId, { name: 'Idea', ticker: 'IDEA' });
  stage.advance(2 * PHASE_MILLIS);
  await ann.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  stage.advance(PHASE_MILLIS);
  await ann.reveal(chamberId);
  await advanceChain(stage);
  stage.advance(PHASE_MILLIS);
  await vi.waitUntil(async () => (await stage.forum.ideas()).length === 1, { timeout: 20_000 });
  return ann;
}

/** The blocks that follow are dated by the service's clock at the end of the reveals, so that none is older than what it holds. */
async function advanceChain(stage: Stage): Promise<void> {
  const { chain } = await stage.forum.health();
  if (!chain?.rpcUrl) return;
  const seconds = Math.ceil((stage.now() + PHASE_MILLIS - Date.now()) / 1000);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'evm_increaseTime', params: [seconds] });
  await fetch(chain.rpcUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
}
