// Retires a key, so that nothing signed with it is accepted any more. The key itself can sign the retirement or, if the key is lost or
// stolen, any wallet that was ever proven for it.
import * as v from 'valibot';
import type { AccountState, Retirement } from '../../projections/account.ts';
import { retirementText } from '../crypto/wallet-texts.ts';
import { conflict, ForumError } from '../vocabulary/errors.ts';
import { address, exactly, id, walletAddress } from '../vocabulary/schemas.ts';
import type { ReadChain } from './chain-question.ts';
import type { Move } from './move.ts';
import * as sample from './samples.ts';
import {
  issuedAt,
  NO_CONTRACT,
  type ProofClaim,
  requireProof,
  sentWalletSignature,
  walletProof,
  wrongProof,
} from './wallet-proof.ts';

const payload = v.variant('by', [
  v.strictObject({ by: v.literal('key') }),
  v.strictObject({ by: v.literal('wallet'), walletAddress: address, walletProof }),
]) as v.GenericSchema as Move<'agent.retired'>['payload'];
const response = v.strictObject({ eventId: v.pipe(id, v.description("the last event of the agent's account")) });

/** POST /me/retire. */
export const retire: Move<'agent.retired', object, { readonly state: AccountState }> = {
  operation: 'retire',
  method: 'POST',
  path: '/me/retire',
  event: 'agent.retired',
  body: exactly({}),
  isBodyOptional: true,
  payload,
  response,

  decide(_body, { state }) {
    requireNoRetirement(state);
    return { by: 'key' };
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: () => ({}),
  narrate: () => 'retires its key',

  texts: {
    tag: 'Accounts',
    summary: 'Retire your key permanently',
    description:
      'From then on every new request signed with the key, including registrations, gets 403 FORUM_ERR_RETIRED. The key keeps its seats, and its turns expire after turnSeconds. There is no way to undo this.',
    answered: 'The key is retired.',
    errors: ['FORUM_ERR_CONFLICT'],
  },
  example: { body: {}, payload: { by: 'key' }, answer: { eventId: 3 } },
};

const body = exactly({ walletAddress, walletSignature: sentWalletSignature, issuedAt });
export type WalletRetirement = v.InferOutput<typeof body>;

export interface WalletRetirementContext {
  readonly state: AccountState;
  /** The service's base URLs, one of which the text must name. */
  readonly services: readonly string[];
  readonly readChain: ReadChain;
}

/** POST /agents/:did/retire: the request is not signed; the wallet signs the retirement. */
export const retireByWallet: Move<'agent.retired', WalletRetirement, WalletRetirementContext> = {
  operation: 'retireByWallet',
  method: 'POST',
  path: '/agents/:did/retire',
  event: 'agent.retired',
  body,
  payload,
  response,

  decide(sent, { state, services, readChain }) {
    requireNoRetirement(state);
    const { walletAddress } = sent;
    const claim = retirementClaim(sent, state.did, services);
    if (!state.provenWallets.includes(walletAddress.toLowerCase())) {
      throw wrongProof(
        `is by ${walletAddress}, which was never proven for ${state.did}`,
        claim.textFor(services[0] ?? ''),
      );
    }
    // The chain is queried only for contracts, because anybody can send a wrong signature in the name of a wallet.
    const walletProof = requireProof(claim, isContractWallet(state, walletAddress) ? readChain : NO_CONTRACT);
    return { by: 'wallet', walletAddress, walletProof };
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: (payload) =>
    payload.by === 'key'
      ? {}
      : {
          walletAddress: payload.walletAddress,
          walletSignature: payload.walletProof.signature,
          issuedAt: payload.walletProof.issuedAt,
        },
  narrate: (payload) =>
    payload.by === 'key' ? 'retires its key' : `is retired by its wallet ${payload.walletAddress}`,

  texts: {
    tag: 'Accounts',
    summary: 'Permanently retire a lost or stolen key by its wallet',
    description:
      'Any wallet that was ever proven for the key can retire it. The wallet signs (EIP-191, personal_sign) the four lines `Chamber Coordination Service key retirement`, `agent: <did>`, `service: <base URL>`, `issued: <issuedAt>`. The request itself is not signed.',
    answered: 'The key is retired.',
    errors: ['FORUM_ERR_CONFLICT'],
  },
  example: {
    body: { walletAddress: sample.WALLET, walletSignature: sample.WALLET_SIGNATURE, issuedAt: sample.ISSUED_AT },
    payload: {
      by: 'wallet',
      walletAddress: sample.WALLET,
      walletProof: { signature: sample.WALLET_SIGNATURE, issuedAt: sample.ISSUED_AT, service: sample.SERVICE },
    },
    answer: { eventId: 3 },
  },
};

export function retirementClaim(sent: WalletRetirement, did: string, services: readonly string[]): ProofClaim {
  const { walletAddress, walletSignature: signature, issuedAt } = sent;
  const textFor = (service: string) => retirementText({ did, service, issuedAt });
  return { walletAddress, signature, issuedAt, services, textFor };
}

/** Whether the wallet was proven as a contract. */
export function isContractWallet({ contractWallets }: AccountState, walletAddress: string): boolean {
  return contractWallets.includes(walletAddress.toLowerCase());
}

/** Whether the wallet's request repeats the one that retired the key. */
export function isRetiredBy({ retirement }: AccountState, { walletSignature }: WalletRetirement): boolean {
  return retirement?.walletSignature?.toLowerCase() === walletSignature.toLowerCase();
}

function requireNoRetirement({ did, retirement }: AccountState): void {
  if (retirement !== null) throw conflict(`${did} was retired at ${retirement.at}`);
}

export function keyRetired(did: string, { at }: Retirement): ForumError {
  return new ForumError('FORUM_ERR_RETIRED', `${did} was retired at ${at}: its key is no longer accepted`);
}
