// Tests that stubs are folded like any line, and that decisions treat a withheld text as equal to any text.
import { describe, expect, it } from 'vitest';
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { isUnchanged } from '../../src/moves/register.ts';
import { chamberMoves } from '../../src/moves/registry.ts';
import { ForumError } from '../../src/vocabulary/errors.ts';
import type { AccountEvent, ChamberEvent } from '../../src/vocabulary/events.ts';
import { withoutTexts } from '../../src/vocabulary/texts.ts';
import { NO_PREVIOUS } from '../../src/vocabulary/values.ts';
import type { Withheld } from '../../src/vocabulary/withheld.ts';
import { ANN, created, joined, proposed } from '../kit/brief-events.ts';
import { accountOf, type BriefEvent, eventsOf, HOURS, LIMITS, noChain } from '../kit/given.ts';

const WITHHELD = { reason: 'law' } as Withheld;
const stubOf = <Event extends ChamberEvent | AccountEvent>(event: Event) =>
  ({ ...event, payload: withoutTexts(event.type, event.payload), request: null, withheld: WITHHELD }) as Event;

const amended = (version: number, text: object): BriefEvent => [
  HOURS.debate,
  ANN,
  { type: 'chamber.amended', payload: { ideaId: 'idea-1', version, ...text } },
];
const PAST = [created({ topic: 'Rain' }), ...joined(ANN), proposed(ANN, 1, 'ONE')];

/** Folds the events; those with these ids are stubs. */
function foldWith(stubs: readonly number[], past: readonly BriefEvent[] = PAST): ChamberState {
  const events = eventsOf(past).map((event) => (stubs.includes(event.eventId) ? stubOf(event) : event));
  return events.reduce<ChamberState | null>(evolveChamber, null) as ChamberState;
}

describe('a chamber with stubs', () => {
  it('a chamber with a stub of its creation has [withheld] as its name, no topic, and otherwise the same state', () => {
    expect(foldWith([1])).toEqual({ ...foldWith([]), name: '[withheld]', topic: null });
  });

  it('a chamber with a stub of a proposal has [withheld] as the idea’s name, and records which texts are withheld', () => {
    const [idea] = foldWith([]).ideas;
    const withheldTexts = ['name', 'description'];
    expect(foldWith([3]).ideas).toEqual([{ ...idea, name: '[withheld]', description: '', withheldTexts }]);
  });

  it.each([
    ['keeps withheld texts that an amendment does not replace', [3], { name: 'New' }, ['description']],
    ['has no withheld text once all texts are replaced', [3], { name: 'New', description: '' }, []],
    ['withholds the text that a withheld amendment changed', [4], { description: 'New' }, ['description']],
  ])('an idea %s', (_title, stubs, changes, withheldTexts) => {
    expect(foldWith(stubs, [...PAST, amended(2, changes)]).ideas[0]?.withheldTexts).toEqual(withheldTexts);
  });
});

describe('an amendment of an idea', () => {
  const decide = (state: ChamberState, changes: object, isStub = false) => {
    const context = {
      ...{ state, did: ANN, account: accountOf(ANN), now: HOURS.debate, limits: LIMITS, readChain: noChain },
      ...{ takesReplies: () => true, isStub },
    };
    return () => chamberMoves.amend.decide({ ideaId: 'idea-1', ...changes }, context);
  };

  it('an amendment must change the text of the idea', () => {
    const { name = '' } = foldWith([]).ideas[0] ?? {};
    expect(decide(foldWith([]), { name })).toThrow(ForumError);
  });

  it('an amendment may change a withheld text, whatever it was', () => {
    expect(decide(foldWith([3]), { description: '' })()).toMatchObject({ version: 2 });
  });

  it('an amendment may be withheld itself', () => {
    const { name = '' } = foldWith([]).ideas[0] ?? {};
    expect(decide(foldWith([]), { name }, true)()).toMatchObject({ version: 2 });
  });
});

describe('an account with a withheld registration', () => {
  const common = { chamberId: null, did: ANN, ts: '2030-01-01T00:00:00.000Z', prev: NO_PREVIOUS, request: null };
  const wallet = { pubkeyHex: '0x00', walletAddress: `0x${'ab'.repeat(20)}` } as const;
  const registered = {
    ...{ ...common, eventId: 1, type: 'agent.registered' },
    payload: { agentId: 'a', ...wallet, personality: { style: 'dry' }, label: 'Ann' },
  } as AccountEvent;
  const state = evolveAccount(null, stubOf(registered));
  const sent = { ...wallet, operatorEmail: 'a@example.org' };
  const isRepeated = (body: object, of: AccountState = state) =>
    isUnchanged({ personality: {}, ...sent, ...body }, { state: of, isSigned: false });

  it('an account with a withheld registration has no label and an empty personality', () => {
    expect(state).toMatchObject({ label: null, personality: {}, registeredPersonality: {} });
  });

  it('a repetition of a withheld registration may have any texts, but not a different wallet', () => {
    expect(isRepeated({ personality: { style: 'dry' }, label: 'Ann' })).toBe(true);
    expect(isRepeated({ personality: {} })).toBe(true);
    expect(isRepeated({ personality: {}, walletAddress: `0x${'cd'.repeat(20)}` })).toBe(false);
  });

  it('texts are compared again after a later registration', () => {
    const later = evolveAccount(state, { ...registered, eventId: 2 });
    expect(isRepeated({ personality: { style: 'dry' }, label: 'Ann' }, later)).toBe(true);
    expect(isRepeated({ personality: {} }, later)).toBe(false);
  });

  it('an account with a withheld registration has the personality of a later change', () => {
    const changed = {
      ...{ ...common, eventId: 2, type: 'agent.personality_changed' },
      payload: { patch: { style: 'wet' }, personality: { style: 'wet' } },
    } as AccountEvent;
    expect(evolveAccount(state, changed)).toMatchObject({
      personality: { style: 'wet' },
      isPersonalityWithheld: false,
    });
    expect(state.isPersonalityWithheld).toBe(true);
  });
});
