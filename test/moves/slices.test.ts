// Properties of each slice: its example conforms to its schemas, its response follows from the event, and the body reconstructed from a
// payload leads to the same payload.
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { changePersonality } from '../../src/moves/change-personality.ts';
import { type Move, parseBody } from '../../src/moves/move.ts';
import { register } from '../../src/moves/register.ts';
import { moveOfEvent, moves } from '../../src/moves/registry.ts';
import { ALICE, CHAMBER_ID, DEADLINES } from '../../src/moves/samples.ts';
import type { JsonObject } from '../../src/vocabulary/values.ts';

const slices = Object.values({ register, changePersonality, ...moves }) as unknown as readonly Move[];
const NAMES = {
  agent: (did: string) => `<${did.slice(-4)}>`,
  idea: (ideaId: string | null) => `[${ideaId}]`,
  words: (text: string) => `“${text}”`,
};

describe('a slice', () => {
  it.each(slices)(
    '$operation has an example that its own schemas accept',
    ({ payload, response, example, ...slice }) => {
      expect(() => parseBody(slice, { json: example.body })).not.toThrow();
      expect(v.safeParse(payload, example.payload).issues).toBeUndefined();
      expect(v.safeParse(response, example.answer).issues).toBeUndefined();
    },
  );

  it.each(slices)('$operation derives its response from the event', ({ answer, example }) => {
    const { eventId = 1 } = example.answer as { readonly eventId?: number };
    const event = { chamberId: CHAMBER_ID, eventId, did: ALICE, payload: example.payload };
    expect(answer(event)).toEqual(example.answer);
  });

  it.each(slices)('$operation implies the body of its example', ({ impliedBody, example }) => {
    const { operatorEmail: _private, ...body } = example.body as JsonObject;
    expect(impliedBody(example.payload)).toEqual(body);
  });

  it('an implied body omits members that are absent in the payload', () => {
    const { createChamber, debate } = moves;
    const payload = { ...createChamber.example.payload, turnSeconds: 60 };
    expect(createChamber.impliedBody(payload)).toEqual({
      name: payload.name,
      ...DEADLINES,
      minBackersForGraduation: 1,
      turnSeconds: 60,
    });
    const plain = { ideaId: null, comment: 'hm', refinement: null };
    expect(debate.impliedBody(plain)).toEqual({ ideaId: null, comment: 'hm' });
  });

  it.each([
    [register, 'registers with the wallet 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'],
    [changePersonality, 'changes the personality'],
    [moves.createChamber, 'opens the chamber “Weather desk”'],
    [moves.join, 'joins; turn 0'],
    [moves.admit, 'admits <1WCT>'],
    [moves.propose, 'proposes RAIN (idea-1): “Rain insurance” “Pays out when it does not rain.”'],
    [moves.debate, 'on [idea-1]: “Who measures the rain?” “{"oracle":"two stations"}”'],
    [moves.amend, 'amends [idea-1] (version 2): description “Pays out when two stations measure no rain for 30 days.”'],
    [moves.withdraw, 'withdraws [idea-1]'],
    [moves.pass, "passes; the turn is <1WCT>'s"],
    [moves.commit, `commits to ${moves.commit.example.payload.commitment}`],
    [moves.reveal, 'reveals [idea-1] 6000 bps'],
  ] as unknown as readonly (readonly [Move, string])[])('$0.operation is narrated as “$1”', (move, text) => {
    expect(move.narrate(move.example.payload, NAMES)).toBe(text);
  });

  it('reveal narrates every share of an allocation, and an empty allocation as an abstention', () => {
    const { salt } = moves.reveal.example.payload;
    const narrate = (...bps: readonly number[]) =>
      moves.reveal.narrate({ allocations: bps.map((each) => ({ ideaId: `idea-${each}`, bps: each })), salt }, NAMES);
    expect(narrate(1, 2)).toBe('reveals [idea-1] 1 bps, [idea-2] 2 bps');
    expect(narrate()).toBe('reveals an abstention');
  });

  it('each slice is found by the type of its event', () => {
    expect(Object.entries(moveOfEvent).map(([type, move]) => [type, move.operation])).toEqual([
      ['chamber.created', 'createChamber'],
      ['chamber.joined', 'join'],
      ['chamber.admitted', 'admit'],
      ['chamber.started', 'start'],
      ['chamber.proposed', 'propose'],
      ['chamber.debated', 'debate'],
      ['chamber.amended', 'amend'],
      ['chamber.withdrawn', 'withdraw'],
      ['chamber.passed', 'pass'],
      ['allocation.committed', 'commit'],
      ['allocation.revealed', 'reveal'],
    ]);
  });
});
