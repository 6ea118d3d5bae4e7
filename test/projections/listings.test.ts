import { describe, expect, it } from 'vitest';
import { evolveChamber } from '../../projections/chamber.ts';
import { type ChamberListing, chamberItemView, type Listing, listingsOf } from '../../projections/listings.ts';
import {
  ANN,
  BOB,
  committed,
  created,
  DEADLINES_HOURLY,
  joined,
  passed,
  proposed,
  revealed,
  settled,
} from '../kit/brief-events.ts';
import { type BriefEvent, eventsOf, fold, HOURS } from '../kit/given.ts';

function changedRows(past: readonly BriefEvent[]): readonly Listing[] {
  const last = eventsOf(past).at(-1);
  if (last === undefined) throw new Error('nothing has happened');
  const before = past.length === 1 ? null : fold(past.slice(0, -1));
  return listingsOf(before, evolveChamber(before, last));
}

/** Returns the rows that the last event changed, in short form. */
function rowsAfter(...past: readonly BriefEvent[]): readonly string[] {
  return changedRows(past).map((row) => {
    if (row.kind === 'idea') return row.idea.ideaId;
    return row.kind === 'member' ? `member ${row.did === ANN ? 'ANN' : 'BOB'}` : row.kind;
  });
}

const MEMBERS = [created(), ...joined(ANN, BOB)];
const IDEAS = [...MEMBERS, proposed(ANN, 1, 'ONE'), proposed(ANN, 2, 'TWO')];
const BACKED = [...IDEAS, revealed(ANN, { 'idea-2': 1 })];
const FAILED: BriefEvent = [
  HOURS.end,
  null,
  { type: 'idea.deploy_failed', payload: { ideaId: 'idea-2', txHash: null, reason: 'taken' } },
];

describe('the rows that an event changes', () => {
  it.each([
    ['creating', MEMBERS.slice(0, 1), ['chamber', 'member ANN']],
    ['joining', MEMBERS, ['chamber', 'member BOB']],
    ['proposing', IDEAS, ['idea-2']],
    ['passing', [...MEMBERS, passed(HOURS.debate, ANN, BOB)], ['turns']],
    ['committing to an allocation', [...IDEAS, committed(ANN, '0x00')], ['member ANN']],
    ['revealing', [...IDEAS, revealed(ANN, { 'idea-1': 5, 'idea-2': 0 })], ['member ANN', 'idea-1', 'idea-2']],
    ['the root on the chain', [...BACKED, settled], ['chamber', 'idea-1', 'idea-2']],
    ['a deployment', [...BACKED, settled, FAILED], ['chamber', 'idea-2']],
  ] as const)('%s changes only the affected rows', (_what, past, rows) => {
    expect(rowsAfter(...past)).toEqual(rows);
  });

  it('the row of a chamber is settled once it is committed and every graduated idea has an outcome', () => {
    const isSettled = (...past: readonly BriefEvent[]) => {
      const rows = changedRows(past);
      return rows.find((row): row is ChamberListing => row.kind === 'chamber')?.isSettled;
    };
    expect(isSettled(...MEMBERS)).toBe(false);
    expect(isSettled(...MEMBERS, settled)).toBe(true);
    expect(isSettled(...BACKED, settled)).toBe(false);
    expect(isSettled(...BACKED, settled, FAILED)).toBe(true);
  });

  it('the row of an idea has its view, its tally and, once the chamber is committed, whether it graduated', () => {
    const ideaRows = (...past: readonly BriefEvent[]) => changedRows(past).filter((row) => row.kind === 'idea');
    expect(ideaRows(...BACKED)).toEqual([
      {
        kind: 'idea',
        proposedAt: HOURS.proposal,
        idea: expect.objectContaining({ ideaId: 'idea-2', backers: 1, totalBps: 1, deployStatus: 'none' }),
      },
    ]);
    expect(ideaRows(...BACKED, settled).map(({ idea }) => [idea.ideaId, idea.deployStatus])).toEqual([
      ['idea-1', 'none'],
      ['idea-2', 'pending'],
    ]);
  });

  it('a second reveal changes only its own rows', () => {
    expect(rowsAfter(...BACKED, revealed(BOB, { 'idea-1': 1 }))).toEqual(['member BOB', 'idea-1']);
  });

  it('the progress of a deployment changes only the row of its idea', () => {
    const payload = { ideaId: 'idea-1', txHash: null, reason: 'taken' };
    const other: BriefEvent = [HOURS.end, null, { type: 'idea.deploy_failed', payload }];
    expect(rowsAfter(...IDEAS, revealed(ANN, { 'idea-1': 1, 'idea-2': 1 }), settled, FAILED, other)).toEqual([
      'chamber',
      'idea-1',
    ]);
  });
});

describe('an item of the list of chambers', () => {
  const item = (...past: readonly BriefEvent[]) => {
    const row = changedRows(past).find((each): each is ChamberListing => each.kind === 'chamber');
    return (now: number) => chamberItemView(row as ChamberListing, now);
  };

  it('an item of the list of chambers has the current phase', () => {
    expect(item(...MEMBERS)(HOURS.debate)).toEqual({
      chamberId: 7,
      phase: 'DEBATE',
      name: 'Test',
      deadlines: DEADLINES_HOURLY,
      memberCount: 2,
      phaseEndsAt: DEADLINES_HOURLY.debateDeadline,
    });
  });

  it('an item of the list of chambers is COMMITTED once the root is on the chain', () => {
    expect(item(...MEMBERS, settled)(HOURS.debate)).toMatchObject({ phase: 'COMMITTED', phaseEndsAt: null });
  });
});
