// Events of chambers for given(): ann creates the chamber at START, its phases last an hour, and members join in the given order.
import type { MoveFact } from '../../src/vocabulary/events.ts';
import { type Deadlines, toTimestamp } from '../../src/vocabulary/values.ts';
import { type BriefEvent, HOURS, walletOf } from './given.ts';

export const ANN = 'did:key:ann';
export const BOB = 'did:key:bob';
export const CYD = 'did:key:cyd';
export const EVE = 'did:key:eve';

export const DEADLINES_HOURLY: Deadlines = {
  lobbyDeadline: toTimestamp(HOURS.proposal),
  proposalDeadline: toTimestamp(HOURS.debate),
  debateDeadline: toTimestamp(HOURS.commit),
  allocateCommitDeadline: toTimestamp(HOURS.reveal),
  allocateRevealDeadline: toTimestamp(HOURS.end),
};

type Joined = Extract<MoveFact, { type: 'chamber.joined' }>['payload'];
export type Created = Extract<MoveFact, { type: 'chamber.created' }>['payload'];

export function created(changes: Partial<Created> = {}): BriefEvent {
  const usual = { name: 'Test', deadlines: DEADLINES_HOURLY, minBackersForGraduation: 1, turnSeconds: null };
  return [HOURS.lobby, ANN, { type: 'chamber.created', payload: { ...usual, ...changes } }];
}

export function joined(...dids: readonly string[]): readonly BriefEvent[] {
  return dids.map((did, turnOrder) => [HOURS.lobby, did, { type: 'chamber.joined', payload: { turnOrder } }]);
}

/** A join that records the state of the account. */
export function joinedWith(did: string, payload: Joined): BriefEvent {
  return [HOURS.lobby, did, { type: 'chamber.joined', payload }];
}

export function proposed(did: string, slot: number, ticker: string): BriefEvent {
  return [HOURS.proposal, did, { type: 'chamber.proposed', payload: ideaPayload(did, slot, ticker) }];
}

export function ideaPayload(did: string, slot: number, ticker: string) {
  const text = { name: `Idea ${ticker}`, ticker, description: '' };
  return { ideaId: `idea-${slot}`, slot, ...text, creatorWallet: walletOf(did) };
}

export function passed(at: number, did: string, nextTurnAgent: string): BriefEvent {
  return [at, did, { type: 'chamber.passed', payload: { nextTurnAgent } }];
}

export function committed(did: string, commitment: `0x${string}`): BriefEvent {
  return [HOURS.commit, did, { type: 'allocation.committed', payload: { commitment } }];
}

export function revealed(did: string, bpsByIdea: Readonly<Record<string, number>>): BriefEvent {
  const allocations = Object.entries(bpsByIdea).map(([ideaId, bps]) => ({ ideaId, bps }));
  return [HOURS.reveal, did, { type: 'allocation.revealed', payload: { allocations, salt: `0x${'aa'.repeat(16)}` } }];
}

/** The service events after the last phase. */
export const settled: BriefEvent = [
  HOURS.end,
  null,
  {
    type: 'chamber.committed',
    payload: {
      merkleRoot: `0x${'11'.repeat(32)}`,
      eventCount: 3,
      txHash: `0x${'22'.repeat(32)}`,
      blockNumber: 5,
      committedAt: toTimestamp(HOURS.end),
    },
  },
];
