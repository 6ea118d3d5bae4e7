// A wallet's signature about a key, in a registration or a retirement: how it is sent, what is kept of it, and whether it is right.
import * as v from 'valibot';
import { recoverSigner } from '../crypto/wallet-signature.ts';
import { type ErrorData, type ForumError, invalid } from '../vocabulary/errors.ts';
import type { WalletProof } from '../vocabulary/events.ts';
import { described, hexString, sentDateTime } from '../vocabulary/schemas.ts';
import { type Hex, instantOf, type Millis, toTimestamp } from '../vocabulary/values.ts';
import { ageProblem, type SignatureAges } from './rules.ts';

/** Wallets that are contracts may take long signatures. */
const SIGNATURE_BYTES_MAX = 8_192;

export const sentWalletSignature = v.pipe(
  hexString(/^0x([0-9a-fA-F]{2})*$/, 'must be 0x and hex digits: the signature of an EIP-191 personal message'),
  v.maxLength(2 + 2 * SIGNATURE_BYTES_MAX, `must have at most ${SIGNATURE_BYTES_MAX} bytes`),
);
export const issuedAt = v.pipe(
  sentDateTime,
  v.description('when the wallet signed, exactly as in the text that it signed'),
);

/** In payloads. */
export const walletProof: v.GenericSchema<WalletProof> = v.strictObject({
  signature: described(/^0x([0-9a-fA-F]{2})*$/, 'as sent'),
  issuedAt: v.pipe(v.string(), v.description('as sent')),
  service: v.pipe(v.string(), v.description('the origin of the service that the signed text names')),
});

/** What the request says, and what the service knows. */
export interface ProofClaim {
  readonly walletAddress: string;
  readonly signature: Hex;
  readonly issuedAt: string;
  /** Origins of the service, one of which the text names; not empty. */
  readonly services: readonly string[];
  /** The text for one of them. */
  readonly textFor: (service: string) => string;
}

/** The proof as it is kept. Throws FORUM_ERR_VALIDATION with the text that was expected. */
export function requireProof({ walletAddress, signature, issuedAt, services, textFor }: ProofClaim): WalletProof {
  let problem = 'is by no wallet';
  for (const service of services) {
    const recovered = recoverSigner(textFor(service), signature);
    if ('address' in recovered && recovered.address === walletAddress.toLowerCase())
      return { signature, issuedAt, service };
    problem = 'problem' in recovered ? recovered.problem : `is not by ${walletAddress} over the expected text`;
  }
  throw wrongProof(problem, textFor(services[0] ?? ''));
}

export interface ProofTime {
  /** The wall clock. */
  readonly clock: Millis;
  readonly ages: SignatureAges;
}

/** Rejects a proof that was not issued at about the time of the request, which its text shows. */
export function requireFreshProof({ issuedAt, services, textFor }: ProofClaim, { clock, ages }: ProofTime): void {
  const problem = ageProblem(instantOf(issuedAt), clock, ages);
  if (problem === undefined) return;
  const serviceTime = toTimestamp(clock);
  throw wrongProof(`issuedAt ${problem} (service time ${serviceTime})`, textFor(services[0] ?? ''), { serviceTime });
}

export function wrongProof(problem: string, text: string, data: ErrorData = {}): ForumError {
  return invalid(`walletSignature: ${problem}; the text to sign is:\n${text}`, data);
}
