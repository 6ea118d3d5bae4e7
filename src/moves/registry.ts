// Every kind of signed event. A new move is its file here, its place in this list, its payload type in vocabulary/events.ts
// and its case in projections/chamber.ts. The compiler reports a missing place.
import type { MoveFact, MovePayloads } from '../vocabulary/events.ts';
import { changePersonality } from './change-personality.ts';
import { commit } from './commit-allocation.ts';
import { createChamber } from './create-chamber.ts';
import { debate } from './debate.ts';
import { join } from './join.ts';
import type { DecisionContext, Move } from './move.ts';
import { pass } from './pass.ts';
import { propose } from './propose.ts';
import { register } from './register.ts';
import { reveal } from './reveal-allocation.ts';

/** Moves in an existing chamber, in the order of the phases. */
export const chamberMoves = { join, propose, debate, pass, commit, reveal } as const;
export const moves = { createChamber, ...chamberMoves } as const;
export const accountMoves = { register, changePersonality } as const;

export type ChamberMoveOperation = keyof typeof chamberMoves;
export type MoveOperation = keyof typeof moves;
export type AnyChamberMove = Move<keyof MovePayloads, unknown, DecisionContext>;

type BodyOf<Slice> = Slice extends {
  readonly body: { readonly '~types'?: { readonly output: infer Body } | undefined };
}
  ? Body
  : never;

/** A validated body with its operation. */
export type ChamberCommand = {
  readonly [Operation in ChamberMoveOperation]: {
    readonly operation: Operation;
    readonly body: BodyOf<(typeof chamberMoves)[Operation]>;
  };
}[ChamberMoveOperation];

/** Decides a move in an existing chamber; throws ForumError. */
export function decideMove({ operation, body }: ChamberCommand, context: DecisionContext): MoveFact {
  const move: AnyChamberMove = chamberMoves[operation];
  // A slice's event and payload belong together, which a union over slices can't express.
  return { type: move.event, payload: move.decide(body, context) } as MoveFact;
}

type Slices = (typeof moves)[MoveOperation];

/** The slice of each type of chamber event. */
export const moveOfEvent: { readonly [Type in keyof MovePayloads]: Move<Type> } = Object.fromEntries(
  Object.values(moves).map((move) => [move.event, move]),
) as unknown as { readonly [Slice in Slices as Slice['event']]: Slice };
