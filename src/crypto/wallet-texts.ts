// The texts about a key that wallets sign (EIP-191, personal_sign), readable in the wallet's window.
import { toChecksumAddress } from '../vocabulary/checksum-address.ts';

export interface SignedText {
  readonly did: string;
  /** The service's base URL (toBaseUrl) or its origin: a signature for one service is not valid for another. */
  readonly service: string;
  /** An RFC 3339 date-time, exactly as sent. */
  readonly issuedAt: string;
}

/** As the URL Standard serializes it, without a slash at its end. */
export function toBaseUrl({ origin, pathname }: Pick<URL, 'origin' | 'pathname'>): string {
  return origin + pathname.replace(/\/+$/, '');
}

/** States that the wallet belongs to the key's holder: five lines, without a line break at the end. */
export function walletProofText(walletAddress: string, { did, service, issuedAt }: SignedText): string {
  return [
    'Chamber Coordination Service wallet proof',
    `agent: ${did}`,
    `wallet: ${toChecksumAddress(walletAddress)}`,
    `service: ${service}`,
    `issued: ${issuedAt}`,
  ].join('\n');
}

/** Retires a lost or stolen key: four lines. */
export function retirementText({ did, service, issuedAt }: SignedText): string {
  return [
    'Chamber Coordination Service key retirement',
    `agent: ${did}`,
    `service: ${service}`,
    `issued: ${issuedAt}`,
  ].join('\n');
}
