// Folds an account stream into the state of an agent.
import type { AccountEvent, AccountPayloads } from '../src/vocabulary/events.ts';
import { unreachable } from '../src/vocabulary/unreachable.ts';
import { type Hex, instantOf, type Millis, type Personality } from '../src/vocabulary/values.ts';

export interface AccountState {
  readonly did: string;
  readonly agentId: string;
  readonly pubkeyHex: Hex;
  readonly walletAddress: string;
  /** Whether the wallet has signed for the key, in the registration that named it or a later one. */
  readonly walletProven: boolean;
  /** All wallets that ever signed for the key, in lower case. Each may retire the key. */
  readonly provenWallets: readonly string[];
  /** The proven wallets that were contracts. */
  readonly contractWallets: readonly string[];
  /** Set once the key is retired: nothing signed with it is accepted any more. */
  readonly retirement: Retirement | null;
  readonly personality: Personality;
  readonly label: string | null;
  /** The personality in the last registration, to detect a repeated registration. */
  readonly registeredPersonality: Personality;
  /** Whether the texts of the last registration are withheld, so that its label and personality are unknown. */
  readonly isRegistrationWithheld: boolean;
  /** Whether the personality comes from a stub, so that the original is unknown. */
  readonly isPersonalityWithheld: boolean;
  /** The event id of the last registration. */
  readonly registrationEventId: number;
  /** Whether the last registration contains its whole signed request, so that anybody can check it. */
  readonly isAttested: boolean;
  /** The last line of an earlier release whose evidence covers an e-mail address. Lines up to this one are not published. */
  readonly privateUntil: number;
  /** ISO 8601 UTC timestamp of the first registration. */
  readonly registeredAt: string;
  readonly lastEventId: number;
  readonly lastAt: Millis;
}

export interface Retirement {
  readonly eventId: number;
  /** ISO 8601 UTC timestamp. */
  readonly at: string;
  /** The signature of the wallet that retired the key; null if the key retired itself. */
  readonly walletSignature: Hex | null;
}

/** Folds one event into the state; the state before the first registration is null. */
export function evolveAccount(state: AccountState | null, event: AccountEvent): AccountState {
  const common = { did: event.did, lastEventId: event.eventId, lastAt: instantOf(event.ts) };
  switch (event.type) {
    case 'agent.registered': {
      const { eventId, request } = event;
      const { walletProof: _, ...payload } = event.payload;
      return {
        ...payload,
        ...common,
        ...provenWallets(state, event.payload),
        retirement: null,
        label: payload.label ?? null,
        registeredPersonality: payload.personality,
        isRegistrationWithheld: event.withheld !== undefined,
        isPersonalityWithheld: event.withheld !== undefined,
        registrationEventId: eventId,
        isAttested: typeof request?.body === 'string',
        privateUntil: request?.body === null ? eventId : (state?.privateUntil ?? 0),
        registeredAt: state?.registeredAt ?? event.ts,
      };
    }
    case 'agent.personality_changed':
      if (state === null) throw new Error(`account ${event.did} starts with ${event.type}`);
      return {
        ...state,
        ...common,
        personality: event.payload.personality,
        isPersonalityWithheld: event.withheld !== undefined,
      };
    case 'agent.retired': {
      if (state === null) throw new Error(`account ${event.did} starts with ${event.type}`);
      const { payload, eventId, ts: at } = event;
      const walletSignature = payload.by === 'wallet' ? payload.walletProof.signature : null;
      return { ...state, ...common, retirement: { eventId, at, walletSignature } };
    }
    default:
      return unreachable(event);
  }
}

/** A registration with a different wallet resets the proof, unless it contains a new one. */
function provenWallets(
  state: AccountState | null,
  { walletAddress, walletProof }: AccountPayloads['agent.registered'],
): Pick<AccountState, 'walletProven' | 'provenWallets' | 'contractWallets'> {
  const wallet = walletAddress.toLowerCase();
  const { walletProven = false, provenWallets = [], contractWallets = [] } = state ?? {};
  if (walletProof === undefined) {
    const isSame = state?.walletAddress.toLowerCase() === wallet;
    return { walletProven: walletProven && isSame, provenWallets, contractWallets };
  }
  return {
    walletProven: true,
    provenWallets: [...new Set([...provenWallets, wallet])],
    contractWallets: walletProof.chainId === undefined ? contractWallets : [...new Set([...contractWallets, wallet])],
  };
}
