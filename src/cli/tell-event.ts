// Tells a chamber's events to people, in one line each.
import type { ChamberState } from '../../projections/chamber.ts';
import { turnHolderAt } from '../../projections/turn.ts';
import { paint, plain } from '../terminal.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';

/** The name of a DID's holder. */
export type NameOf = (did: string) => string;

/** What happened, given the state after it. */
export function tellEvent(event: ChamberEvent, state: ChamberState, nameOf: NameOf): string {
  const who = event.did === null ? 'relayer' : nameOf(event.did);
  return `${paint('dim', String(event.eventId).padStart(4))}  ${paint('cyan', who.padEnd(8))} ${plain(what(event, state, nameOf))}`;
}

function what(event: ChamberEvent, state: ChamberState, nameOf: NameOf): string {
  switch (event.type) {
    case 'chamber.created':
      return `opens the chamber “${event.payload.name}”`;
    case 'chamber.joined':
      return `joins; turn ${event.payload.turnOrder}`;
    case 'chamber.proposed':
      return `proposes ${event.payload.ticker} (${event.payload.ideaId}): ${event.payload.description}`;
    case 'chamber.debated':
      return `on ${tickerOf(state, event.payload.ideaId)}: “${event.payload.comment}”`;
    case 'chamber.passed':
      return `passes; the turn is ${nameOf(turnHolderAt(state, state.lastAt) ?? event.payload.nextTurnAgent)}'s`;
    case 'allocation.committed':
      return `commits to ${event.payload.commitment}`;
    case 'allocation.revealed':
      return `reveals ${shares(event.payload.allocations, state)}`;
    case 'relay.commit_submitted':
      return `sends the root in ${event.payload.txHash}`;
    case 'chamber.committed':
      return `the root is on chain, block ${event.payload.blockNumber}`;
    case 'relay.deploy_submitted':
      return `deploys ${tickerOf(state, event.payload.ideaId)} in ${event.payload.txHash}`;
    case 'idea.deployed':
      return `${tickerOf(state, event.payload.ideaId)} is the token ${event.payload.tokenAddress}`;
    case 'idea.deploy_failed':
      return `${tickerOf(state, event.payload.ideaId)} could not be deployed: ${event.payload.reason}`;
    default:
      return unreachable(event);
  }
}

function shares(allocations: readonly { readonly ideaId: string; readonly bps: number }[], state: ChamberState) {
  return allocations.map(({ ideaId, bps }) => `${tickerOf(state, ideaId)} ${bps} bps`).join(', ') || 'an abstention';
}

export function tickerOf(state: ChamberState, ideaId: string | null): string {
  return state.ideas.find((idea) => idea.ideaId === ideaId)?.ticker ?? 'everything';
}
