// Texts that wallets sign for this client, with the service and the time.
import { type SignedText, toBaseUrl } from '../crypto/wallet-texts.ts';
import { type Hex, instantOf, toTimestamp } from '../vocabulary/values.ts';
import type { Service } from './call.ts';
import { ClientError } from './error.ts';
import { learnTime } from './exchange.ts';

/** A wallet that signs messages (EIP-191, personal_sign), such as an account of viem. */
export interface WalletSigner {
  readonly address: string;
  signMessage(parts: { readonly message: string }): Promise<Hex>;
}

/**
 * Sends the wallet's signature, and another one if the service reports that this machine's clock is wrong.
 */
export async function sendSigned<Result>(
  parts: Parameters<typeof signedBy>,
  send: (proof: Awaited<ReturnType<typeof signedBy>>) => Promise<Result>,
): Promise<Result> {
  const proof = await signedBy(...parts);
  try {
    return await send(proof);
  } catch (error) {
    const [, { clock }] = parts;
    if (!(error instanceof ClientError) || !learnTime(clock, error, instantOf(proof.issuedAt))) throw error;
    return await send(await signedBy(...parts));
  }
}

async function signedBy(
  wallet: WalletSigner,
  { baseUrl, clock }: Service,
  textOf: (about: Omit<SignedText, 'did'>) => string,
): Promise<{ readonly walletSignature: Hex; readonly issuedAt: string }> {
  const issuedAt = toTimestamp(clock.now());
  const message = textOf({ service: toBaseUrl(new URL(baseUrl)), issuedAt });
  return { walletSignature: await wallet.signMessage({ message }), issuedAt };
}
