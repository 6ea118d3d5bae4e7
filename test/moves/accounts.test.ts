import { describe, expect, it } from 'vitest';
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { changePersonality } from '../../src/moves/change-personality.ts';
import { parseBody } from '../../src/moves/move.ts';
import { isUnchanged, parseRegistration, register as registration } from '../../src/moves/register.ts';
import type { AccountFact } from '../../src/vocabulary/events.ts';
import { NO_PREVIOUS, toTimestamp } from '../../src/vocabulary/values.ts';
import { HOUR, START } from '../kit/clock.ts';
import { noChain, outcomeOf } from '../kit/given.ts';
import { Signer } from '../kit/signer.ts';

const { did, pubkeyHex } = new Signer(Buffer.alloc(32, 1));
const BODY = {
  pubkeyHex: pubkeyHex as `0x${string}`,
  walletAddress: `0x${'ab'.repeat(20)}`,
  operatorEmail: 'op@example.org',
  personality: { loves: ['proofs'], style: 'dry' },
};
const REGISTERED: AccountFact = {
  type: 'agent.registered',
  payload: {
    agentId: `agent-${did.slice('did:key:'.length)}`,
    pubkeyHex: BODY.pubkeyHex,
    walletAddress: BODY.walletAddress,
    personality: BODY.personality,
  },
};

function account(...facts: readonly AccountFact[]): AccountState {
  const events = facts.map((fact, index) => {
    const ts = toTimestamp(START + index * HOUR);
    return { eventId: index + 1, chamberId: null, did, ts, prev: NO_PREVIOUS, request: null, ...fact };
  });
  return events.reduce<AccountState | null>(evolveAccount, null) as AccountState;
}

function register(body: typeof BODY, { isSigned = false, state = account(REGISTERED) as AccountState | null } = {}) {
  const context = { state, isSigned, services: [], readChain: noChain };
  if (isUnchanged(body, context)) return null;
  return outcomeOf(() => ({ type: registration.event, payload: registration.decide(body, context) }));
}

describe('registering', () => {
  it('a registration binds the key, with an agentId that follows from it', () => {
    expect(register(BODY, { state: null })).toEqual(REGISTERED);
  });

  it('a registration stores the public key in lower case', () => {
    const upper = { ...BODY, pubkeyHex: `0x${pubkeyHex.slice(2).toUpperCase()}` as `0x${string}` };
    expect(register(upper, { state: null })).toEqual(REGISTERED);
  });

  it('a repeated registration changes nothing', () => {
    expect(register({ ...BODY, personality: { style: 'dry', loves: ['proofs'] } })).toBeNull();
  });

  it('a registration with only a different e-mail address changes nothing, so it can’t be guessed by trial', () => {
    expect(register({ ...BODY, operatorEmail: 'other@example.org' })).toBeNull();
  });

  it('a repeated registration is recognised after a change of the personality', () => {
    const personality = { style: 'wet' };
    const changed: AccountFact = { type: 'agent.personality_changed', payload: { patch: personality, personality } };
    expect(register(BODY, { state: account(REGISTERED, changed) })).toBeNull();
  });

  it.each([
    ['wallet', { ...BODY, walletAddress: `0x${'cd'.repeat(20)}` }],
    ['personality', { ...BODY, personality: { loves: ['proofs'], style: 'wet' } }],
  ])('a registration with a different %s is rejected unless signed', (_what, body) => {
    const detail = expect.stringContaining(`${did} is already registered with different content; to change it, sign`);
    expect(register(body)).toEqual({ code: 'FORUM_ERR_CONFLICT', detail });
    expect(register(body, { isSigned: true })).toMatchObject({ type: 'agent.registered' });
  });

  it.each([
    ['of small order', `0x01${'00'.repeat(31)}`],
    ['not canonically encoded', `0xee${'ff'.repeat(30)}7f`],
    ['not a point', `0x02${'00'.repeat(31)}`],
  ])('a registration with a public key that is %s is rejected', (problem, weak) => {
    const body = { ...BODY, pubkeyHex: weak as `0x${string}` };
    const detail = expect.stringMatching(`^pubkeyHex: .*${problem}`);
    const outcome = outcomeOf(() => parseBody(registration, { json: body }));
    expect(outcome).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
  });
});

describe('an e-mail address', () => {
  const { operatorEmail: _, ...withoutEmail } = BODY;
  const parse = (state: AccountState | null, isSigned: boolean) =>
    outcomeOf(() => parseRegistration({ json: withoutEmail }, { state, isSigned, services: [] }));

  it.each([
    ['an unsigned registration', account(REGISTERED), false],
    ['the first registration of a key', null, true],
  ])('an e-mail address is required of %s', (_what, state, isSigned) => {
    const detail = expect.stringContaining('operatorEmail: is required');
    expect(parse(state, isSigned)).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
  });

  it('an e-mail address may be omitted if a registered key signs', () => {
    expect(parse(account(REGISTERED), true)).toEqual(withoutEmail);
  });
});

describe('changing a personality', () => {
  it('a change of the personality merges per key and replaces arrays', () => {
    const patch = { loves: ['speed'], hates: ['waste'] };
    expect(changePersonality.decide({ patch }, { state: account(REGISTERED) })).toEqual({
      patch,
      personality: { loves: ['speed'], style: 'dry', hates: ['waste'] },
    });
  });
});
