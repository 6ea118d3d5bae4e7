// Wallets of users: viem signs the text of the specification, which is repeated here independently of src.
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import type { Signer } from './signer.ts';
import { PUBLIC_URL, registrationOf, type TestService } from './test-service.ts';

/** Returns the deterministic account with this index. */
export function walletOf(index: number): PrivateKeyAccount {
  return privateKeyToAccount(`0x${(index + 1).toString(16).padStart(64, '0')}`);
}

export interface Proof {
  readonly walletSignature: `0x${string}`;
  readonly issuedAt: string;
}

interface ProofOptions {
  readonly service?: string;
  readonly issuedAt: string;
  /** The address in the text; the signer's by default. */
  readonly address?: string;
}

export async function proofBy(
  wallet: PrivateKeyAccount,
  did: string,
  { service = PUBLIC_URL, issuedAt, address = wallet.address }: ProofOptions,
): Promise<Proof> {
  const message = `Chamber Coordination Service wallet proof\nagent: ${did}\nwallet: ${address}\nservice: ${service}\nissued: ${issuedAt}`;
  return { walletSignature: await wallet.signMessage({ message }), issuedAt };
}

export async function retirementBy(
  wallet: PrivateKeyAccount,
  did: string,
  { service = PUBLIC_URL, issuedAt }: ProofOptions,
): Promise<Proof & { readonly walletAddress: string }> {
  const message = `Chamber Coordination Service key retirement\nagent: ${did}\nservice: ${service}\nissued: ${issuedAt}`;
  return { walletAddress: wallet.address, walletSignature: await wallet.signMessage({ message }), issuedAt };
}

/** Returns the body of a registration with this wallet's proof. */
export async function provenRegistration(service: TestService, by: Signer, wallet: PrivateKeyAccount) {
  const { operatorEmail: _, ...content } = registrationOf(by);
  const proof = await proofBy(wallet, by.did, { issuedAt: new Date(service.clock.read()).toISOString() });
  return { ...content, walletAddress: wallet.address as string, ...proof };
}

/** Registers an agent with a proven wallet. */
export async function agentWith(service: TestService, wallet: PrivateKeyAccount): Promise<Signer> {
  const by = await service.agent();
  await service.must('POST', '/register', { by, body: await provenRegistration(service, by, wallet) });
  return by;
}
