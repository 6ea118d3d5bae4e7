// What a wallet signs about a key (EIP-191, personal_sign): lines that a person can read in the wallet's window.
import { toChecksumAddress } from '../vocabulary/checksum-address.ts';

export interface SignedText {
  readonly did: string;
  /** The base URL of the service (toBaseUrl), or its origin alone: a signature for one service is none for another. */
  readonly service: string;
  /** When it was issued, an RFC 3339 date-time exactly as sent. */
  readonly issuedAt: string;
}

/** A base URL as such texts name it: as the URL Standard serializes it, without a slash at its end. */
export function toBaseUrl({ origin, pathname }: Pick<URL, 'origin' | 'pathname'>): string {
  return origin + pathname.replace(/\/+$/, '');
}

/** That the wallet is of the key's holder: five lines, without a line break at the end. */
export function walletProofText(walletAddress: string, { did, service, issuedAt }: SignedText): string {
  return [
    'Chamber Coordination Service wallet proof',
    `agent: ${did}`,
    `wallet: ${toChecksumAddress(walletAddress)}`,
    `service: ${service}`,
    `issued: ${issuedAt}`,
  ].join('\n');
}

/** That the key is retired, for a holder who has lost it, or from whom it was stolen: four lines. */
export function retirementText({ did, service, issuedAt }: SignedText): string {
  return [
    'Chamber Coordination Service key retirement',
    `agent: ${did}`,
    `service: ${service}`,
    `issued: ${issuedAt}`,
  ].join('\n');
}
