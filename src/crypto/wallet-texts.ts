// The texts that wallets sign about a key (EIP-191, personal_sign), readable in the wallet's dialog.
import { toChecksumAddress } from '../vocabulary/checksum-address.ts';

export interface SignedText {
  readonly did: string;
  /** The service's base URL (toBaseUrl) or its origin: a signature for one service is not valid for another. */
  readonly service: string;
  /** An RFC 3339 date-time, exactly as sent. */
  readonly issuedAt: string;
}

/** Returns the URL in the URL Standard's serialisation, without trailing slashes. */
export function toBaseUrl({ origin, pathname }: Pick<URL, 'origin' | 'pathname'>): string {
  return origin + pathname.replace(/\/+$/, '');
}

/** The text that binds a wallet to a key: five lines, without a trailing line break. */
export function walletProofText(walletAddress: string, { did, service, issuedAt }: SignedText): string {
  return [
    'Chamber Coordination Service wallet proof',
    `agent: ${did}`,
    `wallet: ${toChecksumAddress(walletAddress)}`,
    `service: ${service}`,
    `issued: ${issuedAt}`,
  ].join('\n');
}

/** The text that retires a lost or stolen key: four lines, without a trailing line break. */
export function retirementText({ did, service, issuedAt }: SignedText): string {
  return [
    'Chamber Coordination Service key retirement',
    `agent: ${did}`,
    `service: ${service}`,
    `issued: ${issuedAt}`,
  ].join('\n');
}
