import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Endings } from '../../src/mcp/endings.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const ROUNDS = 80;
const CHAMBERS = 6;
/** More than the writes of a round take. */
const WRITES_MILLIS = 250;

/** Without an order, about one round in twenty ends with an earlier change. */
it('the file of open chambers has the last change, even if each change is made during the write of the previous one', async () => {
  const counts: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const folder = temporaryFolder();
    await openOneByOne(folder);
    await sleep(WRITES_MILLIS);
    counts.push(JSON.parse(readFileSync(join(folder, 'open-chambers'), 'utf8')).chambers.length);
  }
  expect(counts).toEqual(Array(ROUNDS).fill(CHAMBERS));
}, 120_000);

async function openOneByOne(folder: string): Promise<void> {
  const endings = new Endings(folder, () => {});
  for (let last = 1; last <= CHAMBERS; last++) {
    const ids = Array.from({ length: last }, (_, index) => index + 1);
    await endings.unreported({ ids, closed: [], isCut: false });
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
  }
}
