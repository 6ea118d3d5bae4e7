// The contracts' interface as the README publishes it, written down a second time: the relayer's own code is not trusted.
import {
  type Address,
  decodeFunctionData,
  type Hex,
  keccak256,
  parseAbi,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerialized,
} from 'viem';
import type { RelayTransaction } from '../vocabulary/events.ts';

export const ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'function rootOf(uint256 chamberId) view returns (bytes32)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }',
  'function deployIdea(Idea idea) returns (address token)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
]);

/** A call of one of the two contracts, as its signed transaction has it. */
export interface SignedCall {
  readonly chainId: number | undefined;
  readonly nonce: number | undefined;
  readonly txHash: Hex;
  readonly to: Address | null | undefined;
  readonly from: Address;
  readonly call: ReturnType<typeof decodeFunctionData<typeof ABI>>;
}

/** Throws an Error when the bytes are no signed transaction that calls one of the contracts' functions. */
export async function readTransaction({ rawTransaction }: RelayTransaction): Promise<SignedCall> {
  const { chainId, nonce, to, data } = parseTransaction(rawTransaction);
  const from = await recoverTransactionAddress({ serializedTransaction: rawTransaction as TransactionSerialized });
  const call = decodeFunctionData({ abi: ABI, data: data ?? '0x' });
  return { chainId, nonce: nonce ?? 0, txHash: keccak256(rawTransaction), to, from, call };
}
