// An agent as a fold of its account stream.
import type { AccountEvent } from '../src/vocabulary/events.ts';
import { unreachable } from '../src/vocabulary/unreachable.ts';
import type { Hex, Millis, Personality } from '../src/vocabulary/values.ts';

export interface AccountState {
  readonly did: string;
  readonly agentId: string;
  readonly pubkeyHex: Hex;
  readonly walletAddress: string;
  /** Whether the last registration holds a proof that the wallet is that of the key's holder. */
  readonly walletProven: boolean;
  readonly personality: Personality;
  readonly label: string | null;
  /** Of the last registration; a repeated registration is compared with it. */
  readonly registeredPersonality: Personality;
  /** The last registration. */
  readonly registrationEventId: number;
  /** Whether the last registration holds its whole signed request, so that anybody can check the binding. */
  readonly isAttested: boolean;
  /** The last line of an earlier release whose evidence covers an e-mail address: lines up to it are not published. */
  readonly privateUntil: number;
  /** ISO 8601 UTC timestamp of the first registration. */
  readonly registeredAt: string;
  readonly lastEventId: number;
  readonly lastAt: Millis;
}

/** Folds one event into the state; null is the state before the first registration. */
export function evolveAccount(state: AccountState | null, event: AccountEvent): AccountState {
  const common = { did: event.did, lastEventId: event.eventId, lastAt: Date.parse(event.ts) };
  switch (event.type) {
    case 'agent.registered': {
      const { payload, eventId, request } = event;
      return {
        ...payload,
        ...common,
        walletProven: false,
        label: payload.label ?? null,
        registeredPersonality: payload.personality,
        registrationEventId: eventId,
        isAttested: typeof request?.body === 'string',
        privateUntil: request?.body === null ? eventId : (state?.privateUntil ?? 0),
        registeredAt: state?.registeredAt ?? event.ts,
      };
    }
    case 'agent.personality_changed':
      if (state === null) throw new Error(`account ${event.did} starts with ${event.type}`);
      return { ...state, ...common, personality: event.payload.personality };
    default:
      return unreachable(event);
  }
}
