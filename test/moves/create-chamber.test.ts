import { describe, expect, it } from 'vitest';
import { createChamber } from '../../src/moves/create-chamber.ts';
import { ANN, DEADLINES_HOURLY } from '../kit/brief-events.ts';
import { START } from '../kit/clock.ts';
import { accountOf, LIMITS, noChain, outcomeOf } from '../kit/given.ts';

const BODY = { name: 'Test', ...DEADLINES_HOURLY, minBackersForGraduation: 2 };

function create(changes: Partial<typeof BODY> & { turnSeconds?: number }, { now = START, openChambers = 0 } = {}) {
  const account = { ...accountOf(ANN), lastEventId: 5 };
  const context = { now, account, openChambers, limits: LIMITS, readChain: noChain };
  return outcomeOf(() => ({
    type: createChamber.event,
    payload: createChamber.decide({ ...BODY, ...changes }, context),
  }));
}

function refusal(code: string, detail: string) {
  return { code, detail: expect.stringContaining(detail) };
}

describe('creating a chamber', () => {
  it('a creation records all requested settings', () => {
    expect(create({ turnSeconds: 60 })).toEqual({
      type: 'chamber.created',
      payload: {
        name: 'Test',
        deadlines: DEADLINES_HOURLY,
        minBackersForGraduation: 2,
        turnSeconds: 60,
        accountEventId: 5,
      },
    });
    expect(create({})).toMatchObject({ payload: { turnSeconds: null } });
  });

  it('a creation accepts equal deadlines, which skip a phase', () => {
    expect(create({ proposalDeadline: BODY.lobbyDeadline })).toMatchObject({ type: 'chamber.created' });
  });

  it.each([
    ['proposalDeadline', '2030-01-01T00:59:59.999Z'],
    ['debateDeadline', '2030-01-01T01:59:59.999Z'],
    ['allocateCommitDeadline', '2030-01-01T02:59:59.999Z'],
    ['allocateRevealDeadline', '2030-01-01T03:59:59.999Z'],
  ])('a creation rejects a %s before the previous deadline', (name, time) => {
    expect(create({ [name]: time })).toEqual(refusal('FORUM_ERR_VALIDATION', `${name}: `));
  });

  it('a creation rejects a lobby deadline that is not in the future, and the error has the service time', () => {
    const now = Date.parse(BODY.lobbyDeadline);
    expect(create({}, { now })).toEqual(refusal('FORUM_ERR_VALIDATION', `service time ${BODY.lobbyDeadline}`));
    expect(create({}, { now: now - 1 })).toMatchObject({ type: 'chamber.created' });
  });

  it('one error names all wrong deadlines, including a past lobby deadline', () => {
    const now = Date.parse(BODY.lobbyDeadline);
    const wrong = { debateDeadline: BODY.lobbyDeadline, allocateRevealDeadline: BODY.lobbyDeadline };
    const detail = expect.stringMatching('^lobbyDeadline: .*; debateDeadline: .*; allocateRevealDeadline: [^;]*$');
    expect(create(wrong, { now })).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
  });

  it('a creation beyond the agent’s limit of open chambers is rejected', () => {
    const openChambers = LIMITS.openChambersPerDidMax;
    expect(create({}, { openChambers })).toEqual(refusal('FORUM_ERR_CONFLICT', 'open chambers'));
  });
});
