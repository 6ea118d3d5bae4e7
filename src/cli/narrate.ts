// A chamber's events for people, one line each. Moves describe themselves; the service's own events are described here.
import type { ChamberState } from '../../projections/chamber.ts';
import type { Move, Names } from '../moves/move.ts';
import { moveOfEvent } from '../moves/registry.ts';
import { paint, plain } from '../terminal.ts';
import { type ChamberEvent, isMove, type ServiceEvent } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';

/** `state` is the chamber's after the event. */
export function narrate(event: ChamberEvent, state: ChamberState, agent: Names['agent']): string {
  const names: Names = { agent, idea: (ideaId) => tickerOf(state, ideaId) };
  // A slice and the payload of its event type belong together, which a union over event types can't express.
  const move = isMove(event) ? (moveOfEvent[event.type] as Move) : undefined;
  const text = isMove(event) ? move?.narrate(event.payload, names) : narrateService(event, names);
  const who = event.did === null ? 'relayer' : agent(event.did);
  return `${paint('dim', String(event.eventId).padStart(4))}  ${paint('cyan', who.padEnd(8))} ${plain(text ?? event.type)}`;
}

function narrateService({ type, payload }: ServiceEvent, { idea }: Names): string {
  switch (type) {
    case 'relay.commit_submitted':
      return `sends the root in ${payload.txHash}`;
    case 'chamber.committed':
      return `the root is on chain, block ${payload.blockNumber}`;
    case 'relay.deploy_submitted':
      return `deploys ${idea(payload.ideaId)} in ${payload.txHash}`;
    case 'idea.deployed':
      return `${idea(payload.ideaId)} is the token ${payload.tokenAddress}`;
    case 'idea.deploy_failed':
      return `${idea(payload.ideaId)} could not be deployed: ${payload.reason}`;
    default:
      return unreachable(type);
  }
}

export function tickerOf(state: ChamberState, ideaId: string | null): string {
  return state.ideas.find((idea) => idea.ideaId === ideaId)?.ticker ?? 'everything';
}
