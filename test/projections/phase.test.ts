import { describe, expect, it } from 'vitest';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { ANN, created, DEADLINES_HOURLY, joined, settled } from '../kit/brief-events.ts';
import { type BriefEvent, fold, HOURS } from '../kit/given.ts';

const chamber = fold([created()]);
const RELAYED = { chainId: 1, nonce: 0, txHash: '0x00', rawTransaction: '0x00' } as const;

describe('the phase', () => {
  it.each([
    ['LOBBY', HOURS.lobby, HOURS.proposal - 1],
    ['PROPOSAL', HOURS.proposal, HOURS.debate - 1],
    ['DEBATE', HOURS.debate, HOURS.commit - 1],
    ['ALLOCATE_COMMIT', HOURS.commit, HOURS.reveal - 1],
    ['ALLOCATE_REVEAL', HOURS.reveal, HOURS.end - 1],
  ] as const)('the phase is %s from the previous deadline to the last instant before its own', (phase, first, last) => {
    expect([phaseAt(chamber, first), phaseAt(chamber, last)]).toEqual([phase, phase]);
  });

  it('the phase stays ALLOCATE_REVEAL after the reveal deadline until the chamber is committed', () => {
    const later = HOURS.end + 1_000_000;
    expect([phaseAt(chamber, later), isClosed(chamber, later)]).toEqual(['ALLOCATE_REVEAL', true]);
    expect(phaseAt(fold([created(), settled]), later)).toBe('COMMITTED');
  });

  it('a chamber is closed from the instant of the reveal deadline', () => {
    expect([isClosed(chamber, HOURS.end - 1), isClosed(chamber, HOURS.end)]).toEqual([false, true]);
  });

  it('a phase whose deadline equals the previous one is skipped', () => {
    const deadlines = { ...DEADLINES_HOURLY, proposalDeadline: DEADLINES_HOURLY.lobbyDeadline };
    expect(phaseAt(fold([created({ deadlines })]), HOURS.proposal)).toBe('DEBATE');
  });

  it('if all deadlines are equal, the last phase follows LOBBY directly', () => {
    const deadline = DEADLINES_HOURLY.lobbyDeadline;
    const deadlines = {
      lobbyDeadline: deadline,
      proposalDeadline: deadline,
      debateDeadline: deadline,
      allocateCommitDeadline: deadline,
      allocateRevealDeadline: deadline,
    };
    const state = fold([created({ deadlines })]);
    expect([phaseAt(state, HOURS.proposal - 1), phaseAt(state, HOURS.proposal)]).toEqual(['LOBBY', 'ALLOCATE_REVEAL']);
    expect(isClosed(state, HOURS.proposal)).toBe(true);
  });

  it('a clock that was set back does not reopen a phase', () => {
    const late: BriefEvent = [HOURS.debate, ANN, { type: 'chamber.passed', payload: { nextTurnAgent: ANN } }];
    expect(phaseAt(fold([created(), ...joined(ANN), late]), HOURS.lobby)).toBe('DEBATE');
    const relayed: BriefEvent = [HOURS.end, null, { type: 'relay.commit_submitted', payload: RELAYED }];
    expect(isClosed(fold([created(), relayed]), HOURS.lobby)).toBe(true);
  });
});
