// Wallet signatures in registrations and retirements: their schemas and verification.
import * as v from 'valibot';
import { personalMessageHash, recoverSigner } from '../crypto/wallet-signature.ts';
import { type ErrorData, type ForumError, invalid } from '../vocabulary/errors.ts';
import type { WalletProof } from '../vocabulary/events.ts';
import { count, described, hash, hexString, id, sentDateTime } from '../vocabulary/schemas.ts';
import { type Hex, instantOf, type Millis, toHex, toTimestamp } from '../vocabulary/values.ts';
import type { ReadChain } from './chain-question.ts';
import { ageProblem, type SignatureAges } from './rules.ts';

/** Contract wallets may use long signatures. */
const SIGNATURE_BYTES_MAX = 8_192;

export const sentWalletSignature = v.pipe(
  hexString(/^0x([0-9a-fA-F]{2})*$/, 'must be 0x and hex digits: the signature of an EIP-191 personal message'),
  v.maxLength(2 + 2 * SIGNATURE_BYTES_MAX, `must have at most ${SIGNATURE_BYTES_MAX} bytes`),
);
export const issuedAt = v.pipe(
  sentDateTime,
  v.description('when the wallet signed, exactly as in the text that it signed'),
);

/** A proof as recorded in payloads. */
export const walletProof: v.GenericSchema<WalletProof> = v.strictObject({
  signature: described(/^0x([0-9a-fA-F]{2})*$/, 'as sent'),
  issuedAt: v.pipe(v.string(), v.description('as sent')),
  service: v.pipe(
    v.string(),
    v.description('the base URL of the service, or its origin alone, as the signed text names it'),
  ),
  chainId: v.exactOptional(
    v.pipe(id, v.description('present if the wallet is a contract that accepted the signature')),
  ),
  blockNumber: v.exactOptional(count),
  blockHash: v.exactOptional(hash('of the block in which the contract accepted it')),
});

/** A request's claim about a wallet, and the data for verifying it. */
export interface ProofClaim {
  readonly walletAddress: string;
  readonly signature: Hex;
  readonly issuedAt: string;
  /** The service's base URLs, one of which the text must name; not empty. */
  readonly services: readonly string[];
  /** Returns the text to sign for one of the base URLs. */
  readonly textFor: (service: string) => string;
}

/**
 * Verifies a claim; returns the proof to record. If the signature is not by the wallet's private key, queries the chain, because the wallet
 * may be a contract. Throws FORUM_ERR_VALIDATION with the expected text.
 */
export function requireProof(claim: ProofClaim, readChain: ReadChain): WalletProof {
  const { walletAddress, signature, issuedAt, services, textFor } = claim;
  let problem = 'is not by a wallet';
  for (const service of services) {
    const recovered = recoverSigner(textFor(service), signature);
    if ('address' in recovered && recovered.address === walletAddress.toLowerCase())
      return { signature, issuedAt, service };
    problem = 'problem' in recovered ? recovered.problem : `is not by ${walletAddress} over the expected text`;
  }
  const hashes = services.map((service) => toHex(personalMessageHash(textFor(service))));
  const accepted = readChain({ kind: 'signature', wallet: walletAddress, hashes, signature });
  if (accepted === null) throw wrongProof(problem, textFor(services[0] ?? ''));
  const { chainId, blockNumber, blockHash } = accepted;
  const service = services[hashes.indexOf(accepted.hash)] ?? '';
  return { signature, issuedAt, service, chainId, blockNumber, blockHash };
}

/** Finds no contract without querying a chain. */
export const NO_CONTRACT = (() => null) as unknown as ReadChain;

/** Rejects a proof whose `issuedAt` is too far from the time of the request. */
export function requireFreshProof({ issuedAt, services, textFor }: ProofClaim, now: Millis, ages: SignatureAges): void {
  const problem = ageProblem(instantOf(issuedAt), now, ages);
  if (problem === undefined) return;
  const serviceTime = toTimestamp(now);
  throw wrongProof(`issuedAt ${problem} (service time ${serviceTime})`, textFor(services[0] ?? ''), { serviceTime });
}

export function wrongProof(problem: string, text: string, data: ErrorData = {}): ForumError {
  return invalid(`walletSignature: ${problem}; the text to sign is:\n${text}`, data);
}
