// A chamber's row has the same bytes, whatever its state was computed from.
import { expect, it } from 'vitest';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { listingsOf } from '../../projections/listings.ts';
import { decodeState, encodeState } from '../../projections/snapshot.ts';
import { rowOf } from '../../src/log/sql/tables.ts';
import { type ChamberEvent, fromLine, toLine } from '../../src/vocabulary/events.ts';
import { ANN, BOB, created, joined, passed, settled } from '../kit/brief-events.ts';
import { eventsOf, HOURS } from '../kit/given.ts';

const PACE = { turnSeconds: 3_600, rounds: { proposal: 3, debate: 2 }, movesPerTurn: 2 };
const ADMISSION = { admission: { dids: [ANN, BOB] } };
const debated = { type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } } as const;

it.each([
  ['with deadlines alone', created()],
  ['with rounds', created(PACE)],
  ['with rules of admission', created(ADMISSION)],
] as const)('a chamber %s has the same rows live, from its lines and from snapshots', (_title, creation) => {
  const past = [
    creation,
    ...joined(ANN, BOB),
    passed(HOURS.debate, ANN, BOB),
    [HOURS.debate + 1_000, BOB, debated],
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
