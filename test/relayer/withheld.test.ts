// Tests that the relayer sends no withheld text to the chain.
import { expect, test } from 'vitest';
import type { MoveFact } from '../../src/vocabulary/events.ts';
import { WITHHELD_TEXT, type Withheld } from '../../src/vocabulary/withheld.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { MemoryForum } from './memory-forum.ts';
import { openRelayerChain } from './relayer-chain.ts';

const WITHHELD: Withheld = {
  at: '2030-01-01T00:00:00.000Z',
  key: 'A'.repeat(43),
  keyid: 'B'.repeat(43),
  leaf: `0x${'00'.repeat(32)}`,
  log: '0'.repeat(32),
  reason: 'law',
  signature: `${'C'.repeat(85)}A`,
};

/** Appends the stub of an amendment of idea-1. */
function withholdText(forum: MemoryForum): void {
  const payload = { ideaId: 'idea-1', version: 2, description: '' };
  forum.move(1, 'did:key:ann', { type: 'chamber.amended', payload, withheld: WITHHELD } as MoveFact);
}

test('an idea with a withheld text is not deployed, and the others are', async () => {
  const opened = await openRelayerChain();
  const { forum } = opened;
  addChamber(forum, 1, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 1 },
  ]);
  withholdText(forum);
  opened.relayer({});
  await until(() => forum.facts('idea.deployed').length + forum.facts('idea.deploy_failed').length === 2);
  expect(forum.facts('idea.deploy_failed')).toEqual([{ ideaId: 'idea-1', txHash: null, reason: WITHHELD_TEXT }]);
  expect(forum.facts('idea.deployed')).toMatchObject([{ ideaId: 'idea-2' }]);
  expect(forum.facts('relay.deploy_submitted').map(({ ideaId }) => ideaId)).toEqual(['idea-2']);
});
