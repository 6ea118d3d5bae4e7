// Compares the log's claims about the chain with the chain itself, asked over JSON-RPC: the registry's root, the commitment,
// the tokens. The interfaces of both kinds of contracts are written down a second time here: the relayer's own code is not trusted.
import {
  type Address,
  BaseError,
  createPublicClient,
  decodeFunctionData,
  type Hex,
  HttpRequestError,
  http,
  keccak256,
  type PublicClient,
  parseAbi,
  parseEventLogs,
  parseTransaction,
  ResponseBodyTooLargeError,
  recoverTransactionAddress,
  TransactionReceiptNotFoundError,
  type TransactionSerialized,
} from 'viem';
import { toTimestamp } from '../vocabulary/values.ts';
import type { ChamberAudit, Claim } from './chamber-audit.ts';
import { Unreachable, UnusableInput } from './input.ts';

const ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'function rootOf(uint256 chamberId) view returns (bytes32)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }',
  'function deployIdea(Idea idea) returns (address token)',
  'struct Chamber { uint256 chamberId; bytes32 debateMerkleRoot; address dealer; uint64 createdAt; uint64 settledAt; bool settled; }',
  'function getChamber(uint256 chamberId) view returns (Chamber)',
  'struct QuorumIdea { string name; string ticker; string description; string image; string metadata; string context; bytes32 salt; address creator; uint256 chamberId; address protocolTreasury; address winnersSplitter; address forPool; address againstPool; address executorPool; uint16[6] bps; address pairedToken; int24 tickIfToken0IsClanker; int24 tickSpacing; bytes poolData; int24[] tickLower; int24[] tickUpper; uint16[] positionBps; bytes lockerData; bytes mevModuleData; }',
  'function deployIdea(QuorumIdea idea) payable returns (address)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
]);

/**
 * Reads a signed call of one of the contracts' functions; throws an Error for any other bytes. Of an idea it returns what the
 * chamber knows: the rest of a quorum deployment is the operator's.
 */
export async function readTransaction(rawTransaction: Hex) {
  const { chainId, nonce = 0, data = '0x' } = parseTransaction(rawTransaction);
  const from = await recoverTransactionAddress({ serializedTransaction: rawTransaction as TransactionSerialized });
  const { functionName, args } = decodeFunctionData({ abi: ABI, data });
  const [idea] = args;
  const call = { functionName, args: typeof idea === 'object' ? [known(idea)] : args };
  return { chainId, nonce, txHash: keccak256(rawTransaction), from, call };
}

type DecodedIdea = Extract<ReturnType<typeof decodeFunctionData<typeof ABI>>['args'][0], object>;

function known(idea: DecodedIdea): object {
  const { chamberId, name, ticker, description, creator } = idea;
  const ideaId = 'ideaId' in idea ? { ideaId: idea.ideaId } : {};
  return { chamberId, ...ideaId, name, ticker, description, creator };
}

const NO_ROOT = /^0x0*$/;
const TIMEOUT_MILLIS = 30_000;

/** The chain that holds the registry, asked by viem. Every question throws Unreachable when there is no usable response. */
export class AuditedChain {
  readonly registry: Address;
  readonly #host: string;
  readonly #client: PublicClient;

  constructor(rpcUrl: string, registry: Address) {
    this.registry = registry;
    this.#host = new URL(rpcUrl).host;
    // viem's own timeout ends with the headers, that of fetchOnce with the body.
    const transport = http(rpcUrl, { fetchFn: fetchOnce, timeout: 0, retryCount: 0 });
    this.#client = createPublicClient({ transport, ccipRead: false });
  }

  /** The chamber's root in the registry, null before its commitment. Throws UnusableInput where there is no registry. */
  async rootOf(chamberId: number): Promise<Hex | null> {
    const call = { address: this.registry, abi: ABI, args: [BigInt(chamberId)] } as const;
    const orUndefined = (error: BaseError) => {
      const isTransport = (cause: unknown) =>
        cause instanceof HttpRequestError || cause instanceof ResponseBodyTooLargeError;
      if (error.walk(isTransport) !== null) throw this.#toUnreachable(error);
    };
    // A registry has one of the two views.
    const reference = await this.#client.readContract({ ...call, functionName: 'rootOf' }).catch(orUndefined);
    const found =
      reference ?? (await this.#client.readContract({ ...call, functionName: 'getChamber' }).catch(orUndefined));
    if (found === undefined) throw new UnusableInput(`the chain has no ChamberRegistry at ${this.registry}`);
    const root = typeof found === 'string' ? found : found.debateMerkleRoot;
    return NO_ROOT.test(root) ? null : root;
  }

  /** undefined for a transaction that the chain does not know, or that is not in a block yet. */
  async receipt(hash: Hex) {
    try {
      const receipt = await this.#client.getTransactionReceipt({ hash });
      const { timestamp } = await this.#client.getBlock({ blockNumber: receipt.blockNumber });
      return { ...receipt, at: toTimestamp(Number(timestamp) * 1000) };
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return undefined;
      throw this.#toUnreachable(error);
    }
  }

  /** Names the host alone: the rest of a URL, which viem's longer messages hold, may carry credentials. */
  #toUnreachable(error: unknown): Unreachable {
    const cause = (error instanceof BaseError ? error.walk() : error) as Partial<BaseError>;
    return new Unreachable(`the RPC of ${this.#host} failed: ${cause.shortMessage ?? (cause.message || cause.name)}`);
  }
}

async function fetchOnce(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MILLIS) });
  if (!response.ok) throw new Error(`it returned status ${response.status}`);
  return response;
}

export async function compareChain(audit: ChamberAudit, chain?: AuditedChain, chamberId?: number): Promise<void> {
  const { findings, claims } = audit;
  const root = audit.moves.root();
  if (chain === undefined || chamberId === undefined) {
    const reason = chain === undefined ? 'use --rpc and --registry to ask the chain' : 'the chamber is unknown';
    return findings.notEvaluated(reason, 'contract', 'receipts');
  }
  const onChain = await chain.rootOf(chamberId);
  const eventIds = claims.filter(({ event }) => event.type === 'chamber.committed').map(({ eventId }) => eventId);
  if (onChain === null && eventIds.length === 0) {
    findings.notEvaluated('the registry holds no root for this chamber yet', 'contract');
  } else {
    const problem = `the registry holds ${onChain ?? 'no root'} for chamber ${chamberId}, but the root of the moves is ${root}`;
    findings.judge('contract', eventIds, onChain !== root && problem);
  }
  for (const { event, eventId } of claims) {
    const problem = problemOf(event, await chain.receipt(event.payload.txHash), chain.registry);
    findings.judge('receipts', [eventId], problem && `event ${eventId} (${event.type}): ${problem}`);
  }
}

type Receipt = Awaited<ReturnType<AuditedChain['receipt']>>;

function problemOf({ chamberId, ...event }: Claim['event'], receipt: Receipt, registry: Address): string | undefined {
  const { txHash } = event.payload;
  if (receipt === undefined) return `the chain does not know transaction ${txHash}`;
  if (receipt.status !== 'success') return `transaction ${txHash} was reverted`;
  const logs = parseEventLogs({ abi: ABI, logs: receipt.logs, args: { chamberId: BigInt(chamberId) } });
  if (event.type === 'idea.deployed') {
    const { tokenAddress, graduatedAt } = event.payload;
    const isDeployed = logs.some((log) => log.eventName === 'IdeaDeployed' && isSame(log.args.ideaToken, tokenAddress));
    if (!isDeployed) return `transaction ${txHash} did not deploy ${tokenAddress}`;
    return receipt.at === graduatedAt ? undefined : `the time of its block is ${receipt.at}`;
  }
  const { merkleRoot, blockNumber, committedAt } = event.payload;
  const isCommitted = logs.some(
    (log) => log.eventName === 'ChamberCommitted' && isSame(log.address, registry) && log.args.root === merkleRoot,
  );
  if (!isCommitted) return `transaction ${txHash} did not commit this root`;
  if (receipt.blockNumber !== BigInt(blockNumber)) return `its block is ${receipt.blockNumber}`;
  return receipt.at === committedAt ? undefined : `the time of its block is ${receipt.at}`;
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
