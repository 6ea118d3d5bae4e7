// The moves of a chamber. A new move needs a file here, an entry in this list, a payload type in vocabulary/events.ts and a case in
// projections/chamber.ts. The compiler reports a missing step.
import { type ChamberEvent, isMove, type MovePayloads } from '../vocabulary/events.ts';
import { admit } from './admit.ts';
import { amend } from './amend.ts';
import { commit } from './commit-allocation.ts';
import { createChamber } from './create-chamber.ts';
import { debate } from './debate.ts';
import { join } from './join.ts';
import type { DecisionContext, Move, SeenEvent } from './move.ts';
import { pass } from './pass.ts';
import { propose } from './propose.ts';
import { reveal } from './reveal-allocation.ts';
import { start } from './start.ts';
import { withdraw } from './withdraw.ts';

/** Moves in an existing chamber, in the order of the phases. */
export const chamberMoves = { join, admit, start, propose, debate, amend, withdraw, pass, commit, reveal } as const;
export const moves = { createChamber, ...chamberMoves } as const;

export type ChamberMoveOperation = keyof typeof chamberMoves;
export type MoveOperation = keyof typeof moves;
export type AnyChamberMove = Move<keyof MovePayloads, { readonly seen?: SeenEvent }, DecisionContext>;

/** The slice of each type of chamber event. */
export const moveOfEvent: { readonly [Type in keyof MovePayloads]: Move<Type> } = Object.fromEntries(
  Object.values(moves).map((move) => [move.event, move]),
) as unknown as { readonly [Slice in (typeof moves)[MoveOperation] as Slice['event']]: Slice };

/** Whether members may reply to the event. */
export function takesReplies(event: ChamberEvent): boolean {
  return isMove(event) && moveOfEvent[event.type].takesReplies === true;
}
