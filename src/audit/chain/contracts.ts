// The auditor's own ABI of both kinds of contracts, because the relayer is not trusted: decodes signed transactions, and encodes
// the expected calls.
import {
  type Address,
  decodeFunctionData,
  type EncodeFunctionDataParameters,
  encodeFunctionData,
  getAbiItem,
  type Hex,
  hexToBigInt,
  keccak256,
  parseAbi,
  parseTransaction,
  recoverTransactionAddress,
  serializeTransaction,
  slice,
  type TransactionSerialized,
  toFunctionSelector,
} from 'viem';
import type { Idea } from '../../../projections/ideas.ts';
import { toText } from './calls.ts';

const REFERENCE_IDEA =
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }';
const DEPLOY_ABI = parseAbi([REFERENCE_IDEA, 'function deployIdea(Idea idea) returns (address token)']);
export const ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'function rootOf(uint256 chamberId) view returns (bytes32)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  REFERENCE_IDEA,
  'function deployIdea(Idea idea) returns (address token)',
  'struct Chamber { uint256 chamberId; bytes32 debateMerkleRoot; address dealer; uint64 createdAt; uint64 settledAt; bool settled; }',
  'function getChamber(uint256 chamberId) view returns (Chamber)',
  'struct QuorumIdea { string name; string ticker; string description; string image; string metadata; string context; bytes32 salt; address creator; uint256 chamberId; address protocolTreasury; address winnersSplitter; address forPool; address againstPool; address executorPool; uint16[6] bps; address pairedToken; int24 tickIfToken0IsClanker; int24 tickSpacing; bytes poolData; int24[] tickLower; int24[] tickUpper; uint16[] positionBps; bytes lockerData; bytes mevModuleData; }',
  'function deployIdea(QuorumIdea idea) payable returns (address)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
]);

/** Errors with which a contract rejects the calling account. */
const REFUSALS = [
  'NotRelayer(address)',
  'NotDealer()',
  'NotDeployer()',
  'OwnableUnauthorizedAccount(address)',
  'AccessControlUnauthorizedAccount(address,bytes32)',
].map((error) => toFunctionSelector(error));

export function refusesCaller(revertData: unknown): boolean {
  return typeof revertData === 'string' && REFUSALS.some((selector) => revertData.startsWith(selector));
}

/**
 * Decodes a signed call of one of the contracts' functions; throws an Error for other bytes. The returned call contains only the members
 * of an idea that the chamber knows, because the operator chooses the rest of a quorum deployment.
 */
export async function readTransaction(rawTransaction: Hex) {
  const transaction = parseTransaction(rawTransaction);
  const { chainId, nonce = 0, data = '0x', to, value, type } = transaction;
  // Chains reject other encodings, and the larger of the two valid values of s (EIP-2).
  const isCanonical = serializeTransaction(transaction) === rawTransaction;
  if (type !== 'eip1559' || !isCanonical || hexToBigInt(transaction.s ?? '0x0') > LARGEST_S)
    throw new Error('not in the encoding that the relayer uses');
  const from = await recoverTransactionAddress({ serializedTransaction: rawTransaction as TransactionSerialized });
  return { chainId, nonce, txHash: keccak256(rawTransaction), from, to, value, data, ...readCall(data) };
}

/** Half the order of secp256k1. */
const LARGEST_S = 0x7fff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_5d57_6e73_57a4_501d_dfe9_2f46_681b_20a0n;

const SELECTOR_BYTES = 4;

/** Decodes the call and formats it with toText. Throws an Error unless the data is a canonically encoded call of these contracts. */
export function readCall(data: Hex) {
  const { functionName, args } = decodeFunctionData({ abi: ABI, data });
  // Two functions share a name, so the selector decides; viem's types can't express that.
  const abi = [getAbiItem({ abi: ABI, name: slice(data, 0, SELECTOR_BYTES) })];
  if (encodeFunctionData({ abi, functionName, args } as EncodeFunctionDataParameters) !== data)
    throw new Error('not in canonical form');
  const [idea] = args;
  return { functionName, call: toText(functionName, typeof idea === 'object' ? [known(idea)] : args) };
}

/** Returns the call as text, or an empty string for other data. */
export function callOf({ input }: { readonly input: Hex }): string {
  try {
    return readCall(input).call;
  } catch {
    return '';
  }
}

type DecodedIdea = Extract<ReturnType<typeof decodeFunctionData<typeof ABI>>['args'][0], object>;

function known(idea: DecodedIdea): object {
  const { chamberId, name, ticker, description, creator } = idea;
  const ideaId = 'ideaId' in idea ? { ideaId: idea.ideaId } : {};
  return { chamberId, ...ideaId, name, ticker, description, creator };
}

export function deployData(chamberId: number, { ideaId, name, ticker, description, creatorWallet }: Idea): Hex {
  const creator = creatorWallet.toLowerCase() as Address;
  const idea = { chamberId: BigInt(chamberId), ideaId, name, ticker, description, creator };
  return encodeFunctionData({ abi: DEPLOY_ABI, functionName: 'deployIdea', args: [idea] });
}
