// The only file that knows the contracts' interfaces. There is one profile for the reference contracts and one for the live protocol's
// (`quorum`). Both have the same commitChamber and the same events.
import { createRequire } from 'node:module';
import { type Address, concat, decodeErrorResult, encodeFunctionData, type Hex, pad, parseAbi, toHex } from 'viem';
import type { Idea } from '../../projections/ideas.ts';
import { keccak256 } from '../crypto/keccak.ts';
import { toHex as bytesToHex } from '../vocabulary/values.ts';
import type { QuorumSettings } from './quorum-settings.ts';

const require = createRequire(import.meta.url);

export const REGISTRY_ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'function rootOf(uint256 chamberId) view returns (bytes32)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  'error ChamberAlreadyCommitted(uint256 chamberId)',
  'error RootMissing(uint256 chamberId)',
]);

export const FACTORY_ABI = parseAbi([
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }',
  'function deployIdea(Idea idea) returns (address token)',
  'function tokenOf(uint256 chamberId, string ideaId) view returns (address)',
  'function registry() view returns (address)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
  'error ChamberNotCommitted(uint256 chamberId)',
  'error IdeaAlreadyDeployed(uint256 chamberId, string ideaId)',
]);

/** The interface that both reference contracts share. */
export const RELAYED_ABI = parseAbi([
  'function relayer() view returns (address)',
  'function owner() view returns (address)',
  'function setRelayer(address next)',
  'event RelayerChanged(address indexed previous, address indexed next)',
  'error NotRelayer(address caller)',
  'error InvalidRelayer(address relayer)',
  'error OwnableUnauthorizedAccount(address account)',
]);

export const QUORUM_REGISTRY_ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'struct Chamber { uint256 chamberId; bytes32 debateMerkleRoot; address dealer; uint64 createdAt; uint64 settledAt; bool settled; }',
  'function getChamber(uint256 chamberId) view returns (Chamber)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  'error NotDealer()',
  'error ChamberAlreadyCommitted(uint256 chamberId)',
]);

export const QUORUM_FACTORY_ABI = parseAbi([
  'struct Idea { string name; string ticker; string description; string image; string metadata; string context; bytes32 salt; address creator; uint256 chamberId; address protocolTreasury; address winnersSplitter; address forPool; address againstPool; address executorPool; uint16[6] bps; address pairedToken; int24 tickIfToken0IsClanker; int24 tickSpacing; bytes poolData; int24[] tickLower; int24[] tickUpper; uint16[] positionBps; bytes lockerData; bytes mevModuleData; }',
  'function deployIdea(Idea idea) payable returns (address)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
  'error NotDeployer()',
  'error TickerTaken(string ticker)',
  'error InvalidBpsSum(uint256 sum)',
]);

/** An id that no chamber has, for simulated calls. */
export const NO_CHAMBER = 2n ** 256n - 1n;

export type DeployedIdea = Pick<Idea, 'ideaId' | 'name' | 'ticker' | 'description' | 'creatorWallet'>;
/** A bigint only for NO_CHAMBER. */
type ChamberId = number | bigint;

export interface ContractProfile {
  readonly name: 'reference' | 'quorum';
  readonly rootCall: (chamberId: ChamberId) => Hex;
  /** Extracts the root from the result of rootCall. Before the commitment it is zero, of any length. */
  readonly readRoot: (result: Hex) => Hex;
  readonly deployCall: (chamberId: ChamberId, idea: DeployedIdea) => Hex;
  /** Wei that each deployment sends. */
  readonly deployValue: bigint;
  /** Calls a view that returns zero until the idea is deployed; undefined if the contracts have no such view. */
  readonly doneCall: ((chamberId: number, idea: DeployedIdea) => Hex) | undefined;
  /** Calls the view of the factory that returns its registry; undefined if it has no such view. */
  readonly registryCall: Hex | undefined;
}

export const REFERENCE: ContractProfile = {
  name: 'reference',
  rootCall: (chamberId) => encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'rootOf', args: [BigInt(chamberId)] }),
  readRoot: (result) => result,
  deployCall(chamberId, idea) {
    const { ideaId, name, ticker, description } = idea;
    const creator = creatorOf(idea);
    const args = [{ chamberId: BigInt(chamberId), ideaId, name, ticker, description, creator }] as const;
    return encodeFunctionData({ abi: FACTORY_ABI, functionName: 'deployIdea', args });
  },
  deployValue: 0n,
  doneCall: (chamberId, { ideaId }) =>
    encodeFunctionData({ abi: FACTORY_ABI, functionName: 'tokenOf', args: [BigInt(chamberId), ideaId] }),
  registryCall: encodeFunctionData({ abi: FACTORY_ABI, functionName: 'registry' }),
};

/**
 * Returns the profile of the live protocol's contracts. They have no view that reports a deployment; the relayer derives it from nonces
 * and logs.
 */
export function quorumProfile({ value, ...settings }: QuorumSettings): ContractProfile {
  return {
    name: 'quorum',
    rootCall: (chamberId) =>
      encodeFunctionData({ abi: QUORUM_REGISTRY_ABI, functionName: 'getChamber', args: [BigInt(chamberId)] }),
    // debateMerkleRoot is the second word of the struct.
    readRoot: (result) => `0x${result.slice(66, 130)}`,
    deployCall(chamberId, idea) {
      const { ideaId, name, ticker, description } = idea;
      const chamber = { name, ticker, description, creator: creatorOf(idea), chamberId: BigInt(chamberId) };
      const args = [{ salt: saltOf(chamberId, ideaId), ...settings, ...chamber }] as const;
      return encodeFunctionData({ abi: QUORUM_FACTORY_ABI, functionName: 'deployIdea', args });
    },
    deployValue: value,
    doneCall: undefined,
    registryCall: undefined,
  };
}

/** Returns keccak256 of the chamber id in 32 bytes, followed by the idea id in UTF-8. */
function saltOf(chamberId: ChamberId, ideaId: string): Hex {
  const packed = concat([toHex(chamberId, { size: 32 }), toHex(ideaId)]);
  return bytesToHex(keccak256(Buffer.from(packed.slice(2), 'hex')));
}

export function commitChamberCall(chamberId: ChamberId, root: Hex): Hex {
  return encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'commitChamber', args: [BigInt(chamberId), root] });
}

/** The call of a commitment, for simulations. */
export const SIMULATED_COMMIT = commitChamberCall(NO_CHAMBER, `0x${'11'.repeat(32)}`);

/** Returns the creator's wallet in lower case: viem rejects upper case, and mixed case with a wrong checksum. */
export function creatorOf({ creatorWallet }: Pick<Idea, 'creatorWallet'>): Address {
  return creatorWallet.toLowerCase() as Address;
}

const REASON_CHARS_MAX = 300;

/** Returns a message for people, e.g. `IdeaAlreadyDeployed(1, idea-2)`. Other contracts may return any text. */
export function revertReason(data: Hex): string {
  if (data === '0x') return 'reverted without a reason';
  const error = decodeError(data);
  if (error === undefined) return `reverted with ${data}`.slice(0, REASON_CHARS_MAX);
  const { errorName, args = [] } = error;
  const reason = errorName === 'Error' ? String(args[0]) : `${errorName}(${args.join(', ')})`;
  return reason.toWellFormed().slice(0, REASON_CHARS_MAX);
}

/** Returns the name of the error; undefined for an error that these contracts do not declare. */
export function revertError(data: Hex): string | undefined {
  return decodeError(data)?.errorName;
}

/** Errors with which a contract rejects its caller, regardless of the arguments. */
export const CALLER_REJECTED: ReadonlySet<string | undefined> = new Set([
  'NotRelayer',
  'NotDealer',
  'NotDeployer',
  'OwnableUnauthorizedAccount',
  'AccessControlUnauthorizedAccount',
]);

/** Errors that are the same for every idea, so the operator must fix their cause. */
const MISCONFIGURED: ReadonlySet<string | undefined> = new Set([
  ...CALLER_REJECTED,
  'ChamberNotCommitted',
  'InvalidBpsSum',
]);

/** Whether the operator or the contract's owner can remove the cause. The job then waits instead of failing. */
export function isRecoverable(data: Hex): boolean {
  const { errorName, args = [] } = decodeError(data) ?? {};
  const text = errorName === 'Error' ? String(args[0]) : (errorName ?? '');
  return MISCONFIGURED.has(errorName) || PAUSED.test(text);
}

/** Matches `EnforcedPause()` and `Pausable: paused` of OpenZeppelin, and others. */
const PAUSED = /paus/i;

/** Errors of access control, of tokens and of Solidity. */
const OTHER_ERRORS = parseAbi([
  'error AccessControlUnauthorizedAccount(address account, bytes32 role)',
  'error EnforcedPause()',
  'error Paused()',
  'error ERC20InvalidReceiver(address receiver)',
  'error Error(string reason)',
  'error Panic(uint256 code)',
]);

const ALL_ERRORS = [
  ...REGISTRY_ABI,
  ...FACTORY_ABI,
  ...RELAYED_ABI,
  ...QUORUM_REGISTRY_ABI,
  ...QUORUM_FACTORY_ABI,
  ...OTHER_ERRORS,
];

function decodeError(data: Hex): { readonly errorName: string; readonly args?: readonly unknown[] } | undefined {
  try {
    return decodeErrorResult({ abi: ALL_ERRORS, data });
  } catch {
    return undefined;
  }
}

type Deployable = 'ChamberRegistry' | 'IdeaFactory' | 'quorum/QuorumRegistry' | 'quorum/QuorumFactory';

/** Each constructor takes the relayer; the reference factory's takes the registry and the relayer. */
export function creationCode(contract: Deployable, ...args: readonly Address[]): Hex {
  const { bytecode } = require(`#contracts/${contract}.json`) as { readonly bytecode: Hex };
  return concat([bytecode, ...args.map((address) => pad(address))]);
}
