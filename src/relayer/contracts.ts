// The contracts' interface: the one file that knows their functions, events and errors.
import { createRequire } from 'node:module';
import {
  type Address,
  concat,
  decodeAbiParameters,
  decodeErrorResult,
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  type Hex,
  parseAbi,
  parseAbiParameters,
  parseEventLogs,
} from 'viem';
import type { Idea } from '../../projections/chamber.ts';
import type { Log, Topic } from './chain-client.ts';

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

/** Other errors of a deployment: the token's own and Solidity's. */
const OTHER_ERRORS = parseAbi([
  'error ERC20InvalidReceiver(address receiver)',
  'error Error(string reason)',
  'error Panic(uint256 code)',
]);

export function commitChamberCall(chamberId: number, root: Hex): Hex {
  return encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'commitChamber', args: [BigInt(chamberId), root] });
}

export function rootOfCall(chamberId: number): Hex {
  return encodeFunctionData({ abi: REGISTRY_ABI, functionName: 'rootOf', args: [BigInt(chamberId)] });
}

export function rootOfResult(data: Hex): Hex {
  return decodeAbiParameters(parseAbiParameters('bytes32'), data)[0];
}

export function deployIdeaCall(chamberId: number, idea: Idea): Hex {
  const { ideaId, name, ticker, description } = idea;
  const creator = creatorOf(idea);
  const args = [{ chamberId: BigInt(chamberId), ideaId, name, ticker, description, creator }] as const;
  return encodeFunctionData({ abi: FACTORY_ABI, functionName: 'deployIdea', args });
}

/** A view of the reference factory, zero before the deployment; other factories may lack it. */
export function tokenOfCall(chamberId: number, { ideaId }: Idea): Hex {
  return encodeFunctionData({ abi: FACTORY_ABI, functionName: 'tokenOf', args: [BigInt(chamberId), ideaId] });
}

/** viem takes a mixed-case address only with its checksum, and one all in upper case not at all. */
function creatorOf(idea: Idea): Address {
  return idea.creatorWallet.toLowerCase() as Address;
}

export function chamberCommittedTopics(chamberId: number): readonly Topic[] {
  return encodeEventTopics({
    abi: REGISTRY_ABI,
    eventName: 'ChamberCommitted',
    args: { chamberId: BigInt(chamberId) },
  });
}

export function ideaDeployedTopics(chamberId: number, idea: Idea): readonly Topic[] {
  const args = { chamberId: BigInt(chamberId), creator: creatorOf(idea) };
  return encodeEventTopics({ abi: FACTORY_ABI, eventName: 'IdeaDeployed', args });
}

/** Where on the chain an event is. */
export interface Place {
  readonly txHash: Hex;
  readonly blockNumber: number;
}

/** The registry's event that commits the chamber, with its root. */
export function findChamberCommitted(logs: readonly Log[], chamberId: number): (Place & { root: Hex }) | undefined {
  const events = parseEventLogs({ abi: REGISTRY_ABI, eventName: 'ChamberCommitted', logs: [...logs] });
  const event = events.find(({ args }) => args.chamberId === BigInt(chamberId));
  return event && { ...placeOf(event), root: event.args.root };
}

/** The factory's event that deploys the idea, with its token: a ticker is unique in its chamber. */
export function findIdeaDeployed(
  logs: readonly Log[],
  chamberId: number,
  { ticker }: Idea,
): (Place & { token: Address }) | undefined {
  const events = parseEventLogs({ abi: FACTORY_ABI, eventName: 'IdeaDeployed', logs: [...logs] });
  const event = events.find(({ args }) => args.chamberId === BigInt(chamberId) && args.ticker === ticker);
  return event && { ...placeOf(event), token: event.args.ideaToken };
}

function placeOf(event: { readonly transactionHash: Hex; readonly blockNumber: bigint }): Place {
  return { txHash: event.transactionHash, blockNumber: Number(event.blockNumber) };
}

const ERRORS = [...REGISTRY_ABI, ...FACTORY_ABI, ...OTHER_ERRORS];
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

/** Whether a deployment reverts for what the operator must fix, whatever the idea: wrong account, wrong registry. */
export function isMisconfigured(data: Hex): boolean {
  const name = decodeError(data)?.errorName;
  return name === 'NotRelayer' || name === 'ChamberNotCommitted';
}

/** Whether a deployment reverts because the idea has its token already. */
export function isAlreadyDeployed(data: Hex): boolean {
  return decodeError(data)?.errorName === 'IdeaAlreadyDeployed';
}

function decodeError(data: Hex) {
  try {
    return decodeErrorResult({ abi: ERRORS, data });
  } catch {
    return undefined;
  }
}

/** The creation code of the reference registry for this relayer. */
export function registryCreation(relayer: Address): Hex {
  return concat([bytecodeOf('ChamberRegistry'), encodeAbiParameters(parseAbiParameters('address'), [relayer])]);
}

/** The creation code of the reference factory for this registry and relayer. */
export function factoryCreation(registry: Address, relayer: Address): Hex {
  const args = encodeAbiParameters(parseAbiParameters('address, address'), [registry, relayer]);
  return concat([bytecodeOf('IdeaFactory'), args]);
}

function bytecodeOf(contract: 'ChamberRegistry' | 'IdeaFactory'): Hex {
  const artefact = require(`#contracts/${contract}.json`) as { readonly bytecode: Hex };
  return artefact.bytecode;
}
