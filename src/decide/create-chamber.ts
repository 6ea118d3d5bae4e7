import type { Body } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { DEADLINES, type Deadlines, type Millis } from '../vocabulary/values.ts';
import type { ChamberLimits } from './situation.ts';

interface CreateSituation {
  readonly now: Millis;
  /** Chambers of this creator that are not committed yet. */
  readonly openChambers: number;
  readonly limits: ChamberLimits;
}

/** POST /chambers: each deadline not before the one before it, the first in the future. */
export function decideCreateChamber(body: Body<'createChamber'>, situation: CreateSituation): MoveFact {
  const { name, minBackersForGraduation, turnSeconds, ...deadlines } = body;
  requireOrder(deadlines);
  requireFuture(deadlines, situation.now);
  requireRoom(situation);
  return {
    type: 'chamber.created',
    payload: { name, deadlines, minBackersForGraduation, turnSeconds: turnSeconds ?? null },
  };
}

function requireOrder(deadlines: Deadlines): void {
  for (const [index, deadline] of DEADLINES.entries()) {
    const before = DEADLINES[index - 1];
    if (before === undefined || Date.parse(deadlines[deadline]) >= Date.parse(deadlines[before])) continue;
    throw new ForumError('FORUM_ERR_VALIDATION', `${deadline}: must not lie before ${before} (${deadlines[before]})`);
  }
}

function requireFuture(deadlines: Deadlines, now: Millis): void {
  if (Date.parse(deadlines.lobbyDeadline) > now) return;
  const time = new Date(now).toISOString();
  throw new ForumError('FORUM_ERR_VALIDATION', `lobbyDeadline: must lie in the future (service time ${time})`);
}

function requireRoom({ openChambers, limits }: CreateSituation): void {
  if (openChambers < limits.openChambersPerDidMax) return;
  throw new ForumError(
    'FORUM_ERR_CONFLICT',
    `you already have as many open chambers as one agent may have (${limits.openChambersPerDidMax})`,
  );
}
