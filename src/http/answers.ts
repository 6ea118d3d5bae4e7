// The answer to a command is a function of its event, so that a retry is answered from the log alone.
import type { AccountEvent, MoveEvent } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';

export function moveAnswer(event: MoveEvent): unknown {
  switch (event.type) {
    case 'chamber.created':
      return { chamberId: event.chamberId, phase: 'LOBBY' };
    case 'chamber.joined':
      return { ok: true, turnOrder: event.payload.turnOrder };
    case 'chamber.proposed':
      return { ideaId: event.payload.ideaId, ticker: event.payload.ticker };
    case 'chamber.debated':
      return { eventId: event.eventId };
    case 'chamber.passed':
      return { eventId: event.eventId, nextTurnAgent: event.payload.nextTurnAgent };
    case 'allocation.committed':
      return { ok: true };
    case 'allocation.revealed':
      return { ok: true, verified: true };
    default:
      return unreachable(event);
  }
}

export function accountAnswer(event: AccountEvent): unknown {
  switch (event.type) {
    case 'agent.registered':
      return { did: event.did, agentId: event.payload.agentId };
    case 'agent.personality_changed':
      return { personality: event.payload.personality };
    default:
      return unreachable(event);
  }
}
