// Sends the transactions of the contracts' owner: deploys the contracts, and changes the relayer of the reference contracts. Runs all checks
// before the first transaction.
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  formatEther,
  getContractAddress,
  type Hex,
  isAddressEqual,
} from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import {
  hasCode,
  orRevert,
  readBalance,
  readCall,
  readChainId,
  readGas,
  readHead,
  readNonce,
  readReceipt,
  sendRaw,
} from './chain-client.ts';
import { type ContractProfile, creationCode, RELAYED_ABI, revertReason } from './contracts.ts';
import { type FeeSettings, offerFees } from './fees.ts';
import type { Rpc } from './rpc.ts';
import { signTransaction } from './transactions.ts';

/** The message is one sentence for the operator. */
export class OwnerError extends Error {}

export interface Owner {
  readonly rpc: Rpc;
  readonly account: PrivateKeyAccount;
  readonly feeSettings: FeeSettings;
  /** Called for each transaction that the node accepted. */
  readonly onSent: (contract: string, txHash: Hex) => void;
}

export interface ContractAddresses {
  readonly registryAddress: Address;
  readonly factoryAddress: Address;
}

export async function deployContracts(
  owner: Owner,
  { kind, relayer }: { readonly kind: ContractProfile['name']; readonly relayer: Address },
): Promise<ContractAddresses> {
  const { rpc, account } = owner;
  await requireAccount(rpc, relayer);
  const nonce = BigInt(await readNonce(rpc, account.address));
  const registryAddress = getContractAddress({ from: account.address, nonce });
  const factoryAddress = getContractAddress({ from: account.address, nonce: nonce + 1n });
  const codes =
    kind === 'reference'
      ? [creationCode('ChamberRegistry', relayer), creationCode('IdeaFactory', registryAddress, relayer)]
      : [creationCode('quorum/QuorumRegistry', relayer), creationCode('quorum/QuorumFactory', relayer)];
  const [registry = '0x', factory = '0x'] = codes;
  await sendInOrder(owner, [
    { contract: 'registry', to: undefined, data: registry },
    { contract: 'factory', to: undefined, data: factory },
  ]);
  return { registryAddress, factoryAddress };
}

/** Resolves to the names of the contracts that it changed. */
export async function setRelayer(
  owner: Owner,
  { registryAddress, factoryAddress }: ContractAddresses,
  relayer: Address,
): Promise<readonly string[]> {
  const { rpc, account } = owner;
  await requireAccount(rpc, relayer);
  const data = encodeFunctionData({ abi: RELAYED_ABI, functionName: 'setRelayer', args: [relayer] });
  const calls: OwnerCall[] = [];
  for (const [contract, to] of [
    ['registry', registryAddress],
    ['factory', factoryAddress],
  ] as const) {
    const roles = await readRoles(rpc, to);
    if (roles === undefined)
      throw new OwnerError(`the ${contract} at ${to} can’t change its relayer: deploy new contracts`);
    if (!isAddressEqual(roles.owner, account.address)) {
      throw new OwnerError(
        `the ${contract} at ${to} is owned by ${roles.owner}, not by the account ${account.address} of the key`,
      );
    }
    if (!isAddressEqual(roles.relayer, relayer)) calls.push({ contract, to, data });
  }
  await sendInOrder(owner, calls);
  return calls.map(({ contract }) => contract);
}

/** Resolves to undefined for a contract without an owner. */
export async function readRoles(
  rpc: Rpc,
  to: Address,
): Promise<{ readonly owner: Address; readonly relayer: Address } | undefined> {
  const read = async (functionName: 'owner' | 'relayer') => {
    const data = encodeFunctionData({ abi: RELAYED_ABI, functionName });
    const view = await orRevert(readCall(rpc, { to, data }));
    if (!('result' in view) || !/^0x0{24}[0-9a-f]{40}$/.test(view.result)) return undefined;
    return decodeFunctionResult({ abi: RELAYED_ABI, functionName, data: view.result });
  };
  const [owner, relayer] = [await read('owner'), await read('relayer')];
  return owner && relayer && { owner, relayer };
}

async function requireAccount(rpc: Rpc, relayer: Address): Promise<void> {
  if (BigInt(relayer) === 0n) throw new OwnerError('the relayer must not be the zero address');
  if (await hasCode(rpc, relayer))
    throw new OwnerError(`the relayer ${relayer} is a contract: name the account that signs`);
}

interface OwnerCall {
  readonly contract: string;
  /** Undefined to create a contract. */
  readonly to: Address | undefined;
  readonly data: Hex;
}

async function sendInOrder({ rpc, account, feeSettings, onSent }: Owner, calls: readonly OwnerCall[]): Promise<void> {
  const from = account.address;
  const [chainId, first, head] = await Promise.all([readChainId(rpc), readNonce(rpc, from), readHead(rpc)]);
  const offer = await offerFees(rpc, head, feeSettings);
  if ('excess' in offer) throw new OwnerError(offer.excess);
  const { fees } = offer;
  const gases: bigint[] = [];
  for (const { contract, ...call } of calls) {
    const estimate = await orRevert(readGas(rpc, { from, ...call }));
    if ('revertData' in estimate) throw new OwnerError(`${contract}: ${revertReason(estimate.revertData)}`);
    gases.push((estimate.result * 6n) / 5n);
  }
  const cost = gases.reduce((sum, gas) => sum + gas, 0n) * fees.maxFeePerGas;
  const balance = await readBalance(rpc, from);
  if (balance < cost)
    throw new OwnerError(
      `the account ${from} has ${formatEther(balance)} ether and needs ${formatEther(cost)} on chain ${chainId}`,
    );
  for (const [index, { contract, to, data }] of calls.entries()) {
    const unsigned = { chainId, nonce: first + index, to: to ?? null, data, gas: gases[index] ?? 0n, ...fees };
    const { rawTransaction, txHash } = await signTransaction(account, unsigned);
    const outcome = await sendRaw(rpc, rawTransaction);
    if (outcome !== 'accepted') {
      throw new OwnerError(
        `the node did not accept the transaction (${outcome}): wait until ${from} has no pending transactions`,
      );
    }
    onSent(contract, txHash);
    await requireSuccess(rpc, contract, txHash);
  }
}

const POLL_MILLIS = 250;
const POLLS_MAX = 1_200;

async function requireSuccess(rpc: Rpc, contract: string, txHash: Hex): Promise<void> {
  for (let poll = 0; poll < POLLS_MAX; poll++) {
    const receipt = await readReceipt(rpc, txHash);
    if (receipt?.status === 1) return;
    if (receipt !== null) throw new OwnerError(`${contract}: transaction ${txHash} was reverted`);
    await pause(POLL_MILLIS);
  }
  throw new OwnerError(`${contract}: transaction ${txHash} is still not in a block: check it before you try again`);
}
