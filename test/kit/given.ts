// Tests decisions without a service: given(events).when(command at a time).gives(fact) or .rejects(code, detail).
import { expect, onTestFinished } from 'vitest';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import type { ReadChain } from '../../src/moves/chain-question.ts';
import { type ChamberLimits, type DecidingAccount, parseBody } from '../../src/moves/move.ts';
import {
  type AnyChamberMove,
  type ChamberMoveOperation,
  chamberMoves,
  takesReplies,
} from '../../src/moves/registry.ts';
import { type ErrorCode, ForumError } from '../../src/vocabulary/errors.ts';
import type { ChamberEvent, MoveFact, ServiceFact } from '../../src/vocabulary/events.ts';
import { type JsonValue, NO_PREVIOUS, toTimestamp } from '../../src/vocabulary/values.ts';
import { HOUR, START } from './clock.ts';

export const LIMITS: ChamberLimits = { membersMax: 256, ideasMax: 256, openChambersPerDidMax: 1_000 };

/** An event in brief: time, agent and payload; the DID is null for the service. */
export type BriefEvent = readonly [at: number, did: string | null, fact: MoveFact | ServiceFact];

interface ChamberCommand {
  readonly operation: ChamberMoveOperation;
  readonly body: JsonValue;
}

export interface Attempt {
  readonly at: number;
  readonly by: string;
  readonly limits?: Partial<ChamberLimits>;
  readonly account?: Partial<DecidingAccount>;
  /** Answers the decision's questions to the chain; by default, none are allowed. */
  readonly readChain?: ReadChain;
}

/** Returns the events with their numbers in the log, starting with chamber.created. */
export function eventsOf(past: readonly BriefEvent[]): readonly ChamberEvent[] {
  return past.map(([at, did, fact], index) => {
    const common = { eventId: index + 1, chamberId: 7, did, ts: toTimestamp(at), prev: NO_PREVIOUS, request: null };
    return { ...common, ...fact } as ChamberEvent;
  });
}

export function fold(past: readonly BriefEvent[]): ChamberState {
  const state = eventsOf(past).reduce<ChamberState | null>(evolveChamber, null);
  if (state === null) throw new Error('the first event must be chamber.created');
  return state;
}

export function given(...past: readonly BriefEvent[]) {
  const state = fold(past);
  return {
    when({ operation, body }: ChamberCommand, { at, by, limits, account, readChain }: Attempt) {
      const move: AnyChamberMove = chamberMoves[operation];
      const context = {
        state,
        did: by,
        account: { ...accountOf(by), ...account },
        now: at,
        limits: { ...LIMITS, ...limits },
        readChain: readChain ?? noChain,
        takesReplies: (eventId: number) =>
          eventsOf(past).some((event) => event.eventId === eventId && takesReplies(event)),
      };
      const outcome = outcomeOf(() => ({
        type: move.event,
        payload: move.decide(parseBody(move, { json: body }), context),
      }));
      // A command without an assertion about its outcome would always pass.
      let isAsserted = false;
      onTestFinished(() => expect(isAsserted, `when(${operation}) is followed by gives() or rejects()`).toBe(true));
      const expectOutcome = () => {
        isAsserted = true;
        return expect(outcome);
      };
      return {
        /** Adds to every fact the account line on which it was decided. */
        gives: ({ type, payload }: MoveFact) =>
          expectOutcome().toEqual({ type, payload: { ...payload, accountEventId: ACCOUNT_EVENT_ID } }),
        rejects: (code: ErrorCode, detail: string | RegExp) =>
          expectOutcome().toEqual({
            code,
            detail: typeof detail === 'string' ? expect.stringContaining(detail) : expect.stringMatching(detail),
          }),
      };
    },
  };
}

/** Fails if the decision asks the chain. */
export const noChain: ReadChain = ({ kind }) => {
  throw new Error(`unexpected question to the chain: ${kind}`);
};

export function outcomeOf<Fact>(decide: () => Fact): Fact | { code: ErrorCode; detail: string } {
  try {
    return decide();
  } catch (error) {
    if (error instanceof ForumError) return { code: error.code, detail: error.message };
    throw error;
  }
}

/** The head of every account in these tests. */
export const ACCOUNT_EVENT_ID = 3;

export function accountOf(did: string): DecidingAccount {
  return { walletAddress: walletOf(did), walletProven: false, label: null, lastEventId: ACCOUNT_EVENT_ID };
}

export function walletOf(did: string): string {
  return `wallet of ${did}`;
}

/** The hours of the phases since START: LOBBY is [0, 1), PROPOSAL [1, 2), and so on. */
export const HOURS: Readonly<Record<'lobby' | 'proposal' | 'debate' | 'commit' | 'reveal' | 'end', number>> = {
  lobby: START,
  proposal: START + HOUR,
  debate: START + 2 * HOUR,
  commit: START + 3 * HOUR,
  reveal: START + 4 * HOUR,
  end: START + 5 * HOUR,
};
