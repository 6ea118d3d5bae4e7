// A chamber's row has the same bytes, whichever way its state was computed.
import { expect, it } from 'vitest';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { listingsOf } from '../../projections/listings.ts';
import { decodeState, encodeState } from '../../projections/snapshot.ts';
import { rowOf } from '../../src/log/sql/tables.ts';
import { type ChamberEvent, fromLine, toLine } from '../../src/vocabulary/events.ts';
import { ANN, BOB, created, joined, passed, proposed, settled } from '../kit/brief-events.ts';
import { eventsOf, HOURS } from '../kit/given.ts';

const PACE = { turnSeconds: 3_600, rounds: { proposal: 3, debate: 2 }, movesPerTurn: 2 };
const ADMISSION = { admission: { dids: [ANN, BOB] } };
const QUORUM = { minMembers: 2 };
const ONE = { ideaId: 'idea-1', comment: 'hm', refinement: null };
const polled = { type: 'chamber.debated', payload: { ...ONE, stance: 'for', version: 1 } } as const;
const amended = { type: 'chamber.amended', payload: { ideaId: 'idea-1', version: 2, name: 'Better' } } as const;
const withdrawn = { type: 'chamber.withdrawn', payload: { ideaId: 'idea-1' } } as const;
const debated = { type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } } as const;

it.each([
  ['with deadlines alone', created()],
  ['with rounds', created(PACE)],
  ['with rules of admission', created(ADMISSION)],
  ['that needs members', created(QUORUM)],
] as const)('a chamber %s has the same rows live, from its lines and from snapshots', (_title, creation) => {
  const past = [
    creation,
    ...joined(ANN, BOB),
    proposed(ANN, 1, 'ONE'),
    passed(HOURS.debate, ANN, BOB),
    [HOURS.debate + 1_000, BOB, debated],
    [HOURS.debate + 1_000, BOB, polled],
    passed(HOURS.debate + 1_000, BOB, ANN),
    [HOURS.debate + 1_000, ANN, amended],
    [HOURS.debate + 1_000, ANN, withdrawn],
    settled,
  ] as const;
  const events = eventsOf(past) as readonly ChamberEvent[];
  const live = rowsOf(events, (state) => state);
  expect(rowsOf(events, (state) => decodeState(encodeState(state)))).toEqual(live);
  expect(
    rowsOf(
      events.map((event) => fromLine(toLine(event)) as ChamberEvent),
      (state) => state,
    ),
  ).toEqual(live);
});

function rowsOf(events: readonly ChamberEvent[], between: (state: ChamberState) => ChamberState) {
  let state: ChamberState | null = null;
  return events.flatMap((event) => {
    const before = state && between(state);
    state = evolveChamber(before, event);
    return listingsOf(before, state).map(rowOf);
  });
}

it('an idea without amendments has the same row as in earlier releases', () => {
  const rows = rowsOf(eventsOf([created(), ...joined(ANN), proposed(ANN, 1, 'ONE')]), (state) => state);
  const { view } = rows.at(-1) as { readonly view: string };
  expect(view).toBe(
    `{"ideaId":"idea-1","ticker":"ONE","name":"Idea ONE","description":"","creatorDid":"${ANN}","tokenAddress":null,` +
      '"chamberId":7,"graduatedAt":null,"slot":1,"backers":0,"totalBps":0,"deployStatus":"none","deployReason":null}',
  );
});
