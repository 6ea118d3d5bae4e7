import { describe, expect, it } from 'vitest';
import { evolveAccount } from '../../projections/account.ts';
import { decodeAccount, decodeState, encodeState, isSnapshotDue } from '../../projections/snapshot.ts';
import { ANN, BOB, committed, created, joined, proposed, revealed, settled } from '../kit/brief-events.ts';
import { type BriefEvent, fold, HOURS } from '../kit/given.ts';

const HASH = `0x${'33'.repeat(32)}` as const;
const relayed = (rawTransaction: `0x${string}`): BriefEvent => {
  const transaction = { chainId: 1, nonce: 0, txHash: HASH, rawTransaction };
  return [HOURS.end, null, { type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...transaction } }];
};

describe('a snapshot', () => {
  it('a snapshot contains the whole state of a chamber at its end', () => {
    const state = fold([
      created(),
      ...joined(ANN, BOB),
      proposed(ANN, 1, 'ONE'),
      committed(ANN, HASH),
      revealed(ANN, { 'idea-1': 10_000 }),
      settled,
      relayed('0x00'),
    ]);
    expect(decodeState(encodeState(state))).toEqual(state);
    expect(encodeState(decodeState(encodeState(state)))).toBe(encodeState(state));
  });

  it('a snapshot contains the whole state of an account', () => {
    const personality = { loves: ['議'], style: '\u0000' };
    const payload = { agentId: 'agent-1', pubkeyHex: HASH, walletAddress: '0x1', personality };
    const common = { did: ANN, chamberId: null, prev: HASH, ts: '2026-01-01T00:00:00.000Z', request: null } as const;
    const registered = evolveAccount(null, { ...common, eventId: 1, type: 'agent.registered', payload });
    const patched = { patch: {}, personality: { style: 'new' } };
    const state = evolveAccount(registered, {
      ...common,
      eventId: 16,
      type: 'agent.personality_changed',
      payload: patched,
    });
    expect(decodeAccount(encodeState(state))).toEqual(state);
    expect([isSnapshotDue(registered), isSnapshotDue(state)]).toEqual([false, true]);
  });

  const LIGHT = fold([created(), ...joined(ANN), proposed(ANN, 1, 'ONE'), proposed(ANN, 2, 'TWO')]);
  const describedBy = (length: number) => ({
    ...LIGHT,
    ideas: LIGHT.ideas.map((idea) => ({ ...idea, description: 'x'.repeat(length / 2) })),
  });
  const relayedBy = (length: number) => {
    const raw = `0x${'0'.repeat(length / 2 - 2)}` as const;
    return fold([created(), proposed(ANN, 1, 'ONE'), settled, relayed(raw), relayed(raw)]);
  };

  it.each([
    ['little text', LIGHT, [1_000, 2_000, 3_000, 4_000, 6_000]],
    ['a mebibyte', describedBy(1_048_576), [1_000, 2_000, 3_000, 4_000, 6_000]],
    ['slightly more than a mebibyte', describedBy(1_048_578), [2_000, 4_000, 6_000]],
    ['five million characters of descriptions', describedBy(5_000_000), []],
    ['two and a half million characters of descriptions', describedBy(2_500_000), [3_000, 6_000]],
    ['two and a half million characters of transactions', relayedBy(2_500_000), [3_000, 6_000]],
  ])('a snapshot is due at every thousandth event, or less often if there is more text: %s', (_title, state, due) => {
    const dueAt = [999, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000].filter((lastEventId) =>
      isSnapshotDue({ ...state, lastEventId }),
    );
    expect(dueAt).toEqual(due);
  });
});
