import { describe, expect, it } from 'vitest';
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { accountView } from '../../projections/views.ts';
import type { AccountEvent, AccountFact } from '../../src/vocabulary/events.ts';
import { NO_PREVIOUS, toTimestamp } from '../../src/vocabulary/values.ts';
import { ANN } from '../kit/brief-events.ts';
import { HOUR, START } from '../kit/clock.ts';

const REGISTERED = {
  agentId: ANN,
  pubkeyHex: `0x${'11'.repeat(32)}`,
  walletAddress: `0x${'ab'.repeat(20)}`,
  operatorEmailHash: `0x${'22'.repeat(32)}`,
  personality: { style: 'dry' },
} as const;

function event(eventId: number, fact: object): AccountEvent {
  const ts = toTimestamp(START + eventId * HOUR);
  return {
    eventId,
    did: ANN,
    ts,
    prev: NO_PREVIOUS,
    request: null,
    ...(fact as AccountFact),
  } as unknown as AccountEvent;
}

const registered = (eventId: number, changes: object = {}) =>
  event(eventId, { type: 'agent.registered', payload: { ...REGISTERED, ...changes } });
const changed = (eventId: number, personality: object) =>
  event(eventId, { type: 'agent.personality_changed', payload: { personality } });

describe('an account', () => {
  it('an account has the data of its registration', () => {
    expect(evolveAccount(null, registered(1))).toMatchObject({
      did: ANN,
      agentId: ANN,
      pubkeyHex: REGISTERED.pubkeyHex,
      walletAddress: REGISTERED.walletAddress,
      walletProven: false,
      personality: { style: 'dry' },
      registeredPersonality: { style: 'dry' },
      registeredAt: toTimestamp(START + HOUR),
      lastEventId: 1,
      lastAt: START + HOUR,
    });
  });

  it('an account keeps the time of its first registration after a second one', () => {
    const state = [registered(1), registered(2, { personality: { style: 'wet' } })].reduce(
      evolveAccount,
      null as never,
    );
    expect(state).toMatchObject({
      personality: { style: 'wet' },
      registeredPersonality: { style: 'wet' },
      registeredAt: toTimestamp(START + HOUR),
      lastEventId: 2,
      lastAt: START + 2 * HOUR,
    });
  });

  it('an account keeps its registered personality when the personality changes', () => {
    const state = [registered(1), changed(2, { style: 'loud' })].reduce(evolveAccount, null as never);
    expect(state).toMatchObject({
      did: ANN,
      personality: { style: 'loud' },
      registeredPersonality: { style: 'dry' },
      lastEventId: 2,
      lastAt: START + 2 * HOUR,
    });
  });

  it('an account has a proven wallet until a different one is registered without a proof, and remembers all proven wallets', () => {
    const proven = (eventId: number, walletAddress: string) =>
      registered(eventId, { walletAddress, walletProof: { signature: '0x', issuedAt: '', service: '' } });
    const [mine, theirs] = [`0x${'AB'.repeat(20)}`, `0x${'cd'.repeat(20)}`];
    const states: boolean[] = [];
    const state = [
      proven(1, mine),
      registered(2, { walletAddress: mine.toLowerCase() }),
      registered(3, { walletAddress: theirs }),
      registered(4, { walletAddress: mine }),
      proven(5, theirs),
      proven(6, mine),
    ].reduce<AccountState | null>((before, next) => {
      const after = evolveAccount(before, next);
      states.push(after.walletProven);
      return after;
    }, null);
    expect(states).toEqual([true, true, false, false, true, true]);
    expect(state).toMatchObject({ walletAddress: mine, provenWallets: [mine.toLowerCase(), theirs] });
    expect(state).not.toHaveProperty('walletProof');
  });

  it('a retirement changes nothing else in an account', () => {
    const before = evolveAccount(null, registered(1));
    const at = toTimestamp(START + 2 * HOUR);
    const after = evolveAccount(before, event(2, { type: 'agent.retired', payload: { by: 'key' } }));
    const retirement = { eventId: 2, at, walletSignature: null };
    expect(after).toEqual({ ...before, lastEventId: 2, lastAt: Date.parse(at), retirement });
    expect(accountView(after)).toEqual({ ...accountView(before), retiredAt: at });
  });

  it('the account view has the registered data without the e-mail address', () => {
    expect(accountView(evolveAccount(null, registered(1)))).toEqual({
      did: ANN,
      walletAddress: REGISTERED.walletAddress,
      walletProven: false,
      personality: { style: 'dry' },
      registeredAt: toTimestamp(START + HOUR),
    });
  });

  it('an account can’t start with a change', () => {
    expect(() => evolveAccount(null, changed(1, {}))).toThrow(`account ${ANN} starts with agent.personality_changed`);
  });

  it('an account can’t be folded from an event of an unknown type', () => {
    expect(() => evolveAccount(null, event(1, { type: 'agent.renamed' }))).toThrow();
  });
});
