// Asks the chain whether a wallet that is a contract, or can be deployed as one, accepts what the account holds as its signature (EIP-1271,
// ERC-6492), in the block that the line names: the universal validator of ERC-6492 runs in a call that changes nothing.
import {
  type Address,
  universalSignatureValidatorAbi as abi,
  universalSignatureValidatorByteCode as bytecode,
  encodeDeployData,
  encodeFunctionData,
  type Hex,
  parseAbi,
  size,
} from 'viem';
import type { AuditedChain } from './chain-reader.ts';
import { blockDoubt, type ContractProof, noState, type Outcome } from './recorded-block.ts';

/** What the service gives such a call. */
const VALIDATION_GAS = 10_000_000n;

const MAGIC_BYTES = 32;
const MAGIC_VALUE = '0x1626ba7e';
const WALLET_ABI = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);

export async function judgeContractProof(proof: ContractProof, chain: AuditedChain): Promise<Outcome> {
  const { wallet, hash, signature, blockNumber } = proof;
  const doubt = await blockDoubt(chain, proof);
  if (doubt !== undefined) return { doubt };
  const to = wallet.toLowerCase() as Address;
  // The validator fails on a signature that is shorter than the magic bytes of ERC-6492: the wallet is asked itself.
  const isShort = size(signature) < MAGIC_BYTES;
  const args = [hash, signature] as const;
  const call = isShort
    ? { to, data: encodeFunctionData({ abi: WALLET_ABI, functionName: 'isValidSignature', args }) }
    : { data: encodeDeployData({ abi, bytecode, args: [to, ...args] }) };
  const result = await chain.read({ ...call, gas: VALIDATION_GAS }, BigInt(blockNumber));
  if (result === 'unknown') return { doubt: noState(proof) };
  const isAccepted = result !== 'reverted' && (isShort ? result.startsWith(MAGIC_VALUE) : isOne(result));
  const problem = `the contract ${wallet} does not accept the recorded signature in block ${blockNumber}`;
  return { problem: isAccepted ? undefined : problem };
}

function isOne(result: Hex): boolean {
  return result !== '0x' && BigInt(result) === 1n;
}
