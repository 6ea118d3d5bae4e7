// Deploys contracts for tests, as an operator would.
import type { Address, Hex } from 'viem';
import { type ContractProfile, REFERENCE } from '../../src/relayer/contracts.ts';
import { type ContractAddresses, deployContracts, type Owner } from '../../src/relayer/owner.ts';
import type { Rpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';

export const OWNER_KEY: Hex = `0x${'0a'.repeat(32)}`;
/** The key of the relayer after a change. */
export const NEXT_KEY: Hex = `0x${'0b'.repeat(32)}`;
export const NEXT = openAccount(NEXT_KEY).address;

export async function fund(rpc: Rpc, ...addresses: readonly Address[]): Promise<void> {
  for (const address of addresses) await rpc.request('anvil_setBalance', [address, '0x56bc75e2d63100000']);
}

export async function openOwner(rpc: Rpc): Promise<Owner> {
  const account = openAccount(OWNER_KEY);
  await fund(rpc, account.address);
  return { rpc, account, feeSettings: {}, onSent: () => {} };
}

/** Deploys contracts for the relayer with this key. */
export async function deployFor(
  rpc: Rpc,
  privateKey: Hex,
  kind: ContractProfile['name'] = REFERENCE.name,
): Promise<ContractAddresses> {
  return deployContracts(await openOwner(rpc), { kind, relayer: openAccount(privateKey).address });
}
