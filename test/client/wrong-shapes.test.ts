// Lines of a hostile service: if a member is missing or has the wrong type, the client reports a broken log and names the member.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { ChamberState } from '../../projections/chamber.ts';
import { narrate } from '../../src/cli/narrate.ts';
import { ChamberFold } from '../../src/client/chamber-fold.ts';
import { ClientError } from '../../src/client/error.ts';
import { follow } from '../../src/client/events.ts';
import { type ChamberEvent, chamberView, READ_LIMITS } from '../../src/client/index.ts';
import { StubReader } from '../../src/crypto/stub-reader.ts';
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

it('a missing or wrongly typed member of a line is reported by name, or is not needed', () => {
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

const stubs = new StubReader(() => undefined);

/** The problem with the line; undefined if it is accepted. Throws errors that are not ClientErrors. */
function read(value: unknown, { chamberId, eventId }: ChamberEvent, before: ChamberState | null): string | undefined {
  const fold = new ChamberFold(READ_LIMITS);
  fold.state = before;
  try {
    const { event } = follow({ eventId: eventId - 1, leaf: null }, chamberId, JSON.stringify(value), { stubs });
    const state = fold.take(event);
    narrate(event, state, shortAgent);
    chamberView(state, Date.parse(event.ts));
    return undefined;
  } catch (error) {
    if (error instanceof ClientError) return error.detail;
    throw error;
  }
}
