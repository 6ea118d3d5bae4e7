import { describe, expect, it } from 'vitest';
import { outcomeOf, outcomeText } from '../../projections/outcome.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import {
  ANN,
  BOB,
  CYD,
  committed,
  created,
  joined,
  joinedWith,
  proposed,
  revealed,
  settled,
} from '../kit/brief-events.ts';
import { type BriefEvent, fold, HOURS } from '../kit/given.ts';

const HASH = `0x${'33'.repeat(32)}` as const;
const TOKEN = `0x${'44'.repeat(20)}`;

const DECIDED: readonly BriefEvent[] = [
  created({ minBackersForGraduation: 2, topic: 'What to build' }),
  joinedWith(ANN, { turnOrder: 0, walletAddress: '0x1', walletProven: true, label: 'Ann' }),
  joinedWith(BOB, { turnOrder: 1, walletAddress: '0x2', walletProven: false }),
  joinedWith(CYD, { turnOrder: 2 }),
  proposed(ANN, 1, 'ONE'),
  proposed(BOB, 2, 'TWO'),
  proposed(BOB, 3, 'SIX'),
  committed(ANN, HASH),
  committed(BOB, HASH),
  committed(CYD, HASH),
  revealed(ANN, { 'idea-1': 6_000, 'idea-2': 3_000 }),
  revealed(BOB, { 'idea-1': 1, 'idea-2': 9_999, 'idea-3': 0 }),
];
const DEPLOYED = deployed({ ideaId: 'idea-1', tokenAddress: TOKEN });
const FAILED = failed('idea-2', 'the ticker is taken');

describe('the outcome', () => {
  it('the outcome has the members, the shares of each idea, and the results of the deployments', () => {
    expect(outcomeOf(fold([...DECIDED, settled, DEPLOYED, FAILED]), HOURS.end)).toEqual({
      view: {
        chamberId: 7,
        name: 'Test',
        topic: 'What to build',
        createdBy: ANN,
        quorate: null,
        minBackersForGraduation: 2,
        members: [
          { did: ANN, label: 'Ann', wallet: '0x1', walletProven: true },
          { did: BOB, label: null, wallet: '0x2', walletProven: false },
          { did: CYD, label: null, wallet: null, walletProven: null },
        ],
        ideas: [
          {
            ...idea(1, 'ONE', ANN),
            backers: 2,
            totalBps: 6_001,
            shareBps: 3_158,
            graduated: true,
            tokenAddress: TOKEN,
          },
          {
            ...idea(2, 'TWO', BOB),
            ...{ backers: 2, totalBps: 12_999, shareBps: 6_841, graduated: true, failure: 'the ticker is taken' },
          },
          { ...idea(3, 'SIX', BOB), backers: 0, totalBps: 0, shareBps: 0, backersMissing: 2 },
        ],
        abstainedBps: 1_000,
        committed: 3,
        revealed: 2,
        merkleRoot: `0x${'11'.repeat(32)}`,
        committedTxHash: `0x${'22'.repeat(32)}`,
        endedAt: toTimestamp(HOURS.end),
        lastEventId: 15,
      },
    });
  });

  it('the outcome of a chamber without members has neither members nor ideas', () => {
    const outcome = outcomeOf(fold([created(), settled]), HOURS.end);
    const view = { topic: null, members: [], ideas: [], abstainedBps: 0, committed: 0, revealed: 0, lastEventId: 2 };
    expect(outcome).toMatchObject({ view });
  });

  it('the outcome counts a reveal without allocations as abstained', () => {
    const past = [created(), ...joined(ANN), committed(ANN, HASH), revealed(ANN, {}), settled];
    expect(outcomeOf(fold(past), HOURS.end)).toMatchObject({ view: { abstainedBps: 10_000, revealed: 1 } });
  });

  it.each<[string, readonly BriefEvent[], number, string]>([
    [
      'the end of the reveals',
      DECIDED,
      HOURS.end - 1,
      `the end of the reveals, at ${toTimestamp(HOURS.end)} at the latest (it is in ALLOCATE_REVEAL)`,
    ],
    ['the root', DECIDED, HOURS.end, 'its root on the chain'],
    ['the deployment of each graduate', [...DECIDED, settled], HOURS.end, 'the deployment of ONE, TWO'],
    ['the last deployment', [...DECIDED, settled, FAILED], HOURS.end, 'the deployment of ONE'],
  ])('the outcome waits for %s', (_, past, now, waitsFor) => {
    const isForTheChain = now === HOURS.end;
    expect(outcomeOf(fold(past), now)).toEqual({ waitsFor, until: isForTheChain ? null : HOURS.end });
  });

  it('if the outcome waits for many deployments, it names the first five', () => {
    const tickers = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
    const past = [
      created(),
      ...joined(ANN),
      ...tickers.map((ticker, index) => proposed(ANN, index + 1, ticker)),
      revealed(ANN, Object.fromEntries(tickers.map((_, index) => [`idea-${index + 1}`, 1]))),
      settled,
    ];
    const waitsFor = 'the deployment of A, B, C, D, E and 2 more';
    expect(outcomeOf(fold(past), HOURS.end)).toEqual({ waitsFor, until: null });
  });

  it('the text of the outcome is canonical JSON', () => {
    const outcome = outcomeOf(fold([created({ name: 'ä"\u2028' }), settled]), HOURS.end);
    expect('view' in outcome && outcomeText(outcome.view)).toBe(
      `{"abstainedBps":0,"chamberId":7,"committed":0,"committedTxHash":"0x${'22'.repeat(32)}","createdBy":"${ANN}",` +
        `"endedAt":"2030-01-01T05:00:00.000Z","ideas":[],"lastEventId":2,"members":[],"merkleRoot":"0x${'11'.repeat(32)}",` +
        `"minBackersForGraduation":1,"name":"ä\\"\u2028","quorate":null,"revealed":0,"topic":null}`,
    );
  });
});

function idea(slot: number, ticker: string, proposer: string) {
  const open = { backersMissing: 0, graduated: false, tokenAddress: null, failure: null, withdrawn: false, version: 1 };
  return { ideaId: `idea-${slot}`, ticker, name: `Idea ${ticker}`, proposer, ...open };
}

function deployed(token: { readonly ideaId: string; readonly tokenAddress: string }): BriefEvent {
  const payload = { ...token, txHash: HASH, graduatedAt: toTimestamp(HOURS.end) };
  return [HOURS.end, null, { type: 'idea.deployed', payload }];
}

function failed(ideaId: string, reason: string): BriefEvent {
  return [HOURS.end, null, { type: 'idea.deploy_failed', payload: { ideaId, txHash: HASH, reason } }];
}
