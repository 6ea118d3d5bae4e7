import type { AccountState } from '../../projections/account.ts';
import { toDid, weaknessOf } from '../crypto/did-key.ts';
import { canonicalJson } from '../vocabulary/canonical-json.ts';
import type { Body } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { AccountFact } from '../vocabulary/events.ts';
import { fromHex } from '../vocabulary/hex.ts';
import type { Hex } from '../vocabulary/values.ts';

interface RegisterSituation {
  /** null before the first registration. */
  readonly state: AccountState | null;
  readonly operatorEmail: string | undefined;
  /** Whether the request carries a valid signature by the key that is registered. */
  readonly isSigned: boolean;
}

/** The DID that a registration is about; throws FORUM_ERR_VALIDATION for a key that could not be trusted. */
export function registeredDid({ pubkeyHex }: Body<'register'>): string {
  const publicKey = fromHex(pubkeyHex.toLowerCase() as Hex);
  const weakness = weaknessOf(publicKey);
  if (weakness !== undefined) throw new ForumError('FORUM_ERR_VALIDATION', `pubkeyHex: ${weakness}`);
  return toDid(publicKey);
}

/**
 * POST /register. null stands for an unsigned repetition of the last registration, which changes nothing. Everybody
 * knows a public key, so only a signature by it changes an existing binding.
 */
export function decideRegister(body: Body<'register'>, situation: RegisterSituation): AccountFact | null {
  const did = registeredDid(body);
  const { state, isSigned } = situation;
  if (state !== null && !isSigned) {
    if (isSameRegistration(body, situation)) return null;
    throw new ForumError(
      'FORUM_ERR_CONFLICT',
      `${did} is already registered with other content; sign the registration with its key to change it`,
    );
  }
  return {
    type: 'agent.registered',
    payload: {
      agentId: agentIdOf(did),
      pubkeyHex: body.pubkeyHex.toLowerCase() as Hex,
      walletAddress: body.walletAddress,
      personality: body.personality,
    },
  };
}

/** Derived from the DID, so it is stable. */
function agentIdOf(did: string): string {
  return `agent-${did.slice('did:key:'.length)}`;
}

function isSameRegistration(body: Body<'register'>, { state, operatorEmail }: RegisterSituation): boolean {
  return (
    state !== null &&
    body.walletAddress.toLowerCase() === state.walletAddress.toLowerCase() &&
    body.operatorEmail === operatorEmail &&
    canonicalJson(body.personality) === canonicalJson(state.registeredPersonality)
  );
}
