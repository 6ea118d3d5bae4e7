// Lines of a hostile service: whatever member is missing or of another type, the client reports a broken log, and names the member.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { ChamberState } from '../../projections/chamber.ts';
import { narrate } from '../../src/cli/narrate.ts';
import { ChamberFold } from '../../src/client/chamber-fold.ts';
import { ClientError } from '../../src/client/error.ts';
import { follow } from '../../src/client/events.ts';
import { type ChamberEvent, chamberView, READ_LIMITS } from '../../src/client/index.ts';
import { shortAgent } from '../../src/vocabulary/short.ts';
import { ANN, BOB, created } from '../kit/brief-events.ts';
import { START } from '../kit/clock.ts';
import { eventsOf } from '../kit/given.ts';
import { wrongShapes } from '../kit/wrong-shapes.ts';

const ADMISSION = {
  dids: [ANN],
  provenWallets: true,
  token: { address: `0x${'11'.repeat(20)}`, minBalance: '1', at: 'join' },
} as const;
const listed = eventsOf([
  created({ admission: ADMISSION }),
  [START, ANN, { type: 'chamber.admitted', payload: { did: BOB } }],
]) as readonly ChamberEvent[];

const logs = ['chamber', 'chamber-with-rounds'].map((name) => {
  const text = readFileSync(new URL(`../../fixtures/logs/${name}.ndjson`, import.meta.url), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ChamberEvent);
});

it('a member of a line that is missing or of another type is named, or is not read', () => {
  const wrong: string[] = [];
  let named = 0;
  for (const log of [...logs, listed]) {
    for (const [index, event] of log.entries()) {
      const fold = new ChamberFold(READ_LIMITS);
      for (const before of log.slice(0, index)) fold.take(before);
      for (const { path, value } of wrongShapes(event)) {
        const problem = read(value, event, fold.state);
        if (problem?.includes(`: ${path}`)) named++;
        else if (problem !== undefined && !/received event|expected event|belongs to|can’t follow/.test(problem))
          wrong.push(`${event.type} ${path}: ${problem}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(named).toBeGreaterThan(1_000);
});

/** What is wrong with the line; undefined if it is read and shown. Throws what is not a ClientError. */
function read(value: unknown, { chamberId, eventId }: ChamberEvent, before: ChamberState | null): string | undefined {
  const fold = new ChamberFold(READ_LIMITS);
  fold.state = before;
  try {
    const { event } = follow({ eventId: eventId - 1, leaf: null }, chamberId, JSON.stringify(value));
    const state = fold.take(event);
    narrate(event, state, shortAgent);
    chamberView(state, Date.parse(event.ts));
    return undefined;
  } catch (error) {
    if (error instanceof ClientError) return error.detail;
    throw error;
  }
}
