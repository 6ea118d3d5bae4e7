// Whose move it is and which phase, as loops: a turn for each time that an agent may act, a change for each phase.
import type { ChamberState } from '../../projections/chamber.ts';
import { hasTurns, type TurnPhase } from '../../projections/turn.ts';
import type { Millis, Phase } from '../vocabulary/values.ts';
import type { Service } from './exchange.ts';
import { moments } from './moments.ts';
import type { CallOptions } from './requests.ts';

export interface Turn {
  readonly phase: TurnPhase;
  /** The chamber as it is now, folded from its events. */
  readonly state: ChamberState;
  /** When the turn ends unless it is passed before, in milliseconds of the service's clock. */
  readonly endsAt: Millis;
}

export interface PhaseChange {
  readonly phase: Phase;
  readonly state: ChamberState;
}

/** The turns of that member, each once; ends when PROPOSAL and DEBATE are over. */
export async function* turns(
  service: Service,
  chamberId: number,
  did: string,
  { signal }: CallOptions,
): AsyncGenerator<Turn, void, undefined> {
  const interest = ({ phase, holder, turn }: { phase: Phase; holder: string | null; turn: string }) => {
    if (isOver(phase)) return 'over';
    return holder === did ? turn : null;
  };
  for await (const { phase, state, endsAt } of moments(service, chamberId, interest, { signal })) {
    if (!hasTurns(phase)) return;
    yield { phase, state, endsAt };
  }
}

export async function* watch(
  service: Service,
  chamberId: number,
  { signal }: CallOptions,
): AsyncGenerator<PhaseChange, void, undefined> {
  for await (const { phase, state } of moments(service, chamberId, (moment) => moment.phase, { signal })) {
    yield { phase, state };
    if (phase === 'COMMITTED') return;
  }
}

function isOver(phase: Phase): boolean {
  return phase !== 'LOBBY' && !hasTurns(phase);
}
