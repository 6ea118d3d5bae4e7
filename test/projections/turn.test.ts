import { describe, expect, it } from 'vitest';
import { nextClockChange, turnHolderAt } from '../../projections/turn.ts';
import { ANN, BOB, CYD, created, DEADLINES_HOURLY, joined, passed } from '../kit/brief-events.ts';
import { type BriefEvent, fold, HOURS } from '../kit/given.ts';

const MEMBERS = [created(), ...joined(ANN, BOB, CYD)];
const TIMED = [created({ turnSeconds: 60 }), ...joined(ANN, BOB, CYD)];
const MINUTE = 60_000;

/** Returns the turn holder at each instant. */
function holders(past: readonly BriefEvent[], ...instants: readonly number[]) {
  const state = fold(past);
  return instants.map((at) => turnHolderAt(state, at));
}

describe('the turn', () => {
  it('nobody has the turn outside PROPOSAL and DEBATE', () => {
    const { lobby, commit, reveal, end } = HOURS;
    expect(holders(MEMBERS, lobby, commit, reveal, end)).toEqual([null, null, null, null]);
  });

  it('nobody has the turn in a chamber without members', () => {
    expect(holders([created({ turnSeconds: 60 })], HOURS.proposal, HOURS.debate)).toEqual([null, null]);
  });

  it('the first member has the first turn in both phases', () => {
    const past = [...MEMBERS, passed(HOURS.proposal, ANN, BOB)];
    expect(holders(past, HOURS.proposal, HOURS.debate)).toEqual([BOB, ANN]);
  });

  it('the turn goes round in the order of joining', () => {
    const at = HOURS.debate;
    expect(holders([...MEMBERS, passed(at, ANN, BOB)], at)).toEqual([BOB]);
    expect(holders([...MEMBERS, passed(at, ANN, BOB), passed(at, BOB, CYD)], at)).toEqual([CYD]);
    expect(holders([...MEMBERS, passed(at, ANN, BOB), passed(at, BOB, CYD), passed(at, CYD, ANN)], at)).toEqual([ANN]);
  });

  it('a turn has no time limit without turnSeconds', () => {
    expect(holders(MEMBERS, HOURS.debate - 1)).toEqual([ANN]);
  });
});

describe('a turn with turnSeconds', () => {
  it('a turn expires exactly after turnSeconds', () => {
    const start = HOURS.proposal;
    expect(holders(TIMED, start, start + MINUTE - 1, start + MINUTE, start + 2 * MINUTE)).toEqual([ANN, ANN, BOB, CYD]);
  });

  it('expired turns go round as often as necessary', () => {
    expect(holders(TIMED, HOURS.proposal + 3 * MINUTE, HOURS.proposal + 31 * MINUTE)).toEqual([ANN, BOB]);
  });

  it('a turn after a pass lasts turnSeconds', () => {
    const at = HOURS.proposal + MINUTE / 2;
    const past = [...TIMED, passed(at, ANN, BOB)];
    expect(holders(past, at + MINUTE - 1, at + MINUTE)).toEqual([BOB, CYD]);
  });

  it('with turnSeconds the first member has the first turn in the next phase', () => {
    const past = [...TIMED, passed(HOURS.debate - 1, ANN, BOB)];
    expect(holders(past, HOURS.debate, HOURS.debate + MINUTE)).toEqual([ANN, BOB]);
  });

  it('the first turn begins with DEBATE if PROPOSAL is skipped', () => {
    const deadlines = { ...DEADLINES_HOURLY, proposalDeadline: DEADLINES_HOURLY.lobbyDeadline };
    const past = [created({ deadlines, turnSeconds: 60 }), ...joined(ANN, BOB)];
    expect(holders(past, HOURS.proposal, HOURS.proposal + MINUTE)).toEqual([ANN, BOB]);
  });

  it('a clock that was set back does not return a turn to its previous holder', () => {
    const at = HOURS.proposal + 90_000;
    const spoken: BriefEvent = [at, BOB, { type: 'chamber.passed', payload: { nextTurnAgent: CYD } }];
    expect(holders([...TIMED, spoken], HOURS.proposal)).toEqual([CYD]);
  });
});

describe('the clock alone changes a chamber next', () => {
  const next = (past: readonly BriefEvent[], ...instants: readonly number[]) => {
    const state = fold(past);
    return instants.map((at) => nextClockChange(state, at));
  };

  it('the clock changes a chamber at the end of its phase', () => {
    const { lobby, proposal, debate, reveal, end } = HOURS;
    expect(next(MEMBERS, lobby, proposal - 1, proposal, reveal)).toEqual([proposal, proposal, debate, end]);
  });

  it('the clock changes a chamber at the end of a limited turn, or of the phase if this is sooner', () => {
    const { proposal, debate } = HOURS;
    const instants = [proposal, proposal + MINUTE - 1, proposal + MINUTE, debate - 1];
    expect(next(TIMED, ...instants)).toEqual([proposal + MINUTE, proposal + MINUTE, proposal + 2 * MINUTE, debate]);
    const passedLate = [...TIMED, passed(debate - MINUTE / 2, BOB, CYD)];
    expect(next(passedLate, debate - 1)).toEqual([debate]);
  });

  it('the clock never changes a chamber after the reveal deadline', () => {
    expect(next(MEMBERS, HOURS.end, HOURS.end + MINUTE)).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
  });

  it('the next change by the clock is after the newest event, even if the clock was set back', () => {
    expect(next([...MEMBERS, passed(HOURS.debate, ANN, BOB)], HOURS.lobby)).toEqual([HOURS.commit]);
  });
});
