// Sends texts signed by wallets, which include the service and the time.
import { type SignedText, toBaseUrl } from '../crypto/wallet-texts.ts';
import { type Hex, instantOf, toTimestamp } from '../vocabulary/values.ts';
import type { Service } from './call.ts';
import { ClientError } from './error.ts';
import { learnTime } from './exchange.ts';

/** A wallet that signs messages (EIP-191, personal_sign), such as a viem account. */
export interface WalletSigner {
  readonly address: string;
  signMessage(parts: { readonly message: string }): Promise<Hex>;
}

/** Sends the wallet's signature, and sends a new one once if the service's error shows that this machine's clock is wrong. */
export async function sendSigned<Result>(
  parts: Parameters<typeof signText>,
  send: (proof: Awaited<ReturnType<typeof signText>>) => Promise<Result>,
): Promise<Result> {
  const proof = await signText(...parts);
  try {
    return await send(proof);
  } catch (error) {
    const [, { clock }] = parts;
    if (!(error instanceof ClientError) || !learnTime(clock, error, instantOf(proof.issuedAt))) throw error;
    return await send(await signText(...parts));
  }
}

async function signText(
  wallet: WalletSigner,
  { baseUrl, clock }: Service,
  textOf: (about: Omit<SignedText, 'did'>) => string,
): Promise<{ readonly walletSignature: Hex; readonly issuedAt: string }> {
  const issuedAt = toTimestamp(clock.now());
  const message = textOf({ service: toBaseUrl(new URL(baseUrl)), issuedAt });
  return { walletSignature: await wallet.signMessage({ message }), issuedAt };
}
