// A move in a chamber that exists: command and state in, fact or refusal out, by the file named after the command.
import type { MoveCommand } from '../vocabulary/commands.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import { decideCommit } from './commit-allocation.ts';
import { decideDebate } from './debate.ts';
import { decideJoin } from './join.ts';
import { decidePass } from './pass.ts';
import { decidePropose } from './propose.ts';
import { decideReveal } from './reveal-allocation.ts';
import type { Situation } from './situation.ts';

export type ChamberCommand = Exclude<MoveCommand, { type: 'createChamber' }>;

/** Throws ForumError; pure, so that the auditor decides every line again with the very same function. */
export function decideMove(command: ChamberCommand, situation: Situation): MoveFact {
  switch (command.type) {
    case 'join':
      return decideJoin(situation);
    case 'propose':
      return decidePropose(command.body, situation);
    case 'debate':
      return decideDebate(command.body, situation);
    case 'pass':
      return decidePass(situation);
    case 'commit':
      return decideCommit(command.body, situation);
    case 'reveal':
      return decideReveal(command.body, situation);
    default:
      return unreachable(command);
  }
}
