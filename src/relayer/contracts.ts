// The contracts' interface: their functions, events and errors.
import { createRequire } from 'node:module';
import { type Address, concat, decodeErrorResult, encodeFunctionData, type Hex, pad, parseAbi } from 'viem';
import type { Idea } from '../../projections/chamber.ts';

const require = createRequire(import.meta.url);

export const REGISTRY_ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'function rootOf(uint256 chamberId) view returns (bytes32)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  'error ChamberAlreadyCommitted(uint256 chamberId)',
  'error NotRelayer(address caller)',
  'error RootMissing(uint256 chamberId)',
]);

export const FACTORY_ABI = parseAbi([
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }',
  'function deployIdea(Idea idea) returns (address token)',
  'function tokenOf(uint256 chamberId, string ideaId) view returns (address)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
  'error ChamberNotCommitted(uint256 chamberId)',
  'error IdeaAlreadyDeployed(uint256 chamberId, string ideaId)',
]);

export function commitChamberCall(chamberId: number, root: Hex): Hex {
  return encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'commitChamber', args: [BigInt(chamberId), root] });
}

export function rootOfCall(chamberId: number): Hex {
  return encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'rootOf', args: [BigInt(chamberId)] });
}

export function deployIdeaCall(chamberId: number, idea: Idea): Hex {
  const { ideaId, name, ticker, description } = idea;
  const creator = creatorOf(idea);
  const args = [{ chamberId: BigInt(chamberId), ideaId, name, ticker, description, creator }] as const;
  return encodeFunctionData({ abi: FACTORY_ABI, functionName: 'deployIdea', args });
}

/** viem takes a mixed-case address only with its checksum, and one all in upper case not at all. */
export function creatorOf({ creatorWallet }: Idea): Address {
  return creatorWallet.toLowerCase() as Address;
}

/** A view of the reference factory, zero before the deployment; other factories may lack it. */
export function tokenOfCall(chamberId: number, { ideaId }: Idea): Hex {
  return encodeFunctionData({ abi: FACTORY_ABI, functionName: 'tokenOf', args: [BigInt(chamberId), ideaId] });
}

const REASON_CHARS_MAX = 300;

/** A revert's reason for people, e.g. `IdeaAlreadyDeployed(1, idea-2)`; other contracts may return any text. */
export function revertReason(data: Hex): string {
  if (data === '0x') return 'reverted without a reason';
  const error = decodeError(data);
  if (error === undefined) return `reverted with ${data}`.slice(0, REASON_CHARS_MAX);
  const { errorName, args } = error;
  const reason = errorName === 'Error' ? args[0] : `${errorName}(${args.join(', ')})`;
  return reason.toWellFormed().slice(0, REASON_CHARS_MAX);
}

/** The name of a revert's error; undefined where it is no error of these contracts. */
export function revertError(data: Hex): string | undefined {
  return decodeError(data)?.errorName;
}

/** Other errors of a deployment: the token's own and Solidity's. */
const OTHER_ERRORS = parseAbi([
  'error ERC20InvalidReceiver(address receiver)',
  'error Error(string reason)',
  'error Panic(uint256 code)',
]);

function decodeError(data: Hex) {
  try {
    return decodeErrorResult({ abi: [...REGISTRY_ABI, ...FACTORY_ABI, ...OTHER_ERRORS], data });
  } catch {
    return undefined;
  }
}

/** The creation code of a reference contract: the registry takes the relayer, the factory the registry and the relayer. */
export function creationCode(contract: 'ChamberRegistry' | 'IdeaFactory', ...args: readonly Address[]): Hex {
  const { bytecode } = require(`#contracts/${contract}.json`) as { readonly bytecode: Hex };
  return concat([bytecode, ...args.map((address) => pad(address))]);
}
