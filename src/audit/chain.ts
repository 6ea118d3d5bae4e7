// Compares the log's claims about the chain with the chain itself, asked over JSON-RPC: the registry's root, the commitment,
// the tokens. The contracts' interface is written down a second time here: the relayer's own code is not trusted.
import {
  type Address,
  decodeFunctionData,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  type Log,
  parseAbi,
  parseEventLogs,
  parseTransaction,
  type RpcTransactionReceipt,
  recoverTransactionAddress,
  type TransactionSerialized,
} from 'viem';
import { toTimestamp } from '../vocabulary/values.ts';
import type { ChamberAudit, Claim } from './chamber-audit.ts';
import { readText, send, Unreachable, UnusableInput } from './input.ts';

const ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'function rootOf(uint256 chamberId) view returns (bytes32)',
  'event ChamberCommitted(uint256 indexed chamberId, bytes32 root, address indexed relayer)',
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }',
  'function deployIdea(Idea idea) returns (address token)',
  'event IdeaDeployed(address indexed ideaToken, uint256 indexed chamberId, address indexed creator, string ticker)',
]);

/** Reads a signed call of one of the contracts' functions; throws an Error for any other bytes. */
export async function readTransaction(rawTransaction: Hex) {
  const { chainId, nonce = 0, data = '0x' } = parseTransaction(rawTransaction);
  const from = await recoverTransactionAddress({ serializedTransaction: rawTransaction as TransactionSerialized });
  const call = decodeFunctionData({ abi: ABI, data });
  return { chainId, nonce, txHash: keccak256(rawTransaction), from, call };
}

export async function compareChain(audit: ChamberAudit, chain: AuditedChain, chamberId: number): Promise<void> {
  await compareRoot(audit, chain, chamberId);
  for (const { event, eventId } of audit.claims) {
    const receipt = await chain.receipt(event.payload.txHash);
    const problem = problemOf(event, receipt, chain.registry);
    const sentence = `event ${eventId} (${event.type}): ${problem}`;
    audit.findings.judge('receipts', problem === undefined, { eventIds: [eventId], sentence });
  }
}

async function compareRoot(audit: ChamberAudit, chain: AuditedChain, chamberId: number): Promise<void> {
  const { findings, claims, root } = audit;
  const onChain = await chain.rootOf(chamberId);
  const eventIds = claims.filter(({ event }) => event.type === 'chamber.committed').map(({ eventId }) => eventId);
  if (onChain === null && eventIds.length === 0) {
    findings.notEvaluated('contract', 'the registry holds no root for this chamber yet');
    return;
  }
  const sentence = `the registry holds ${onChain ?? 'no root'} for chamber ${chamberId}, but the root of the moves is ${root}`;
  findings.judge('contract', onChain === root, { eventIds, sentence });
}

function problemOf(event: Claim['event'], receipt: Receipt | undefined, registry: Address): string | undefined {
  const { txHash } = event.payload;
  if (receipt === undefined) return `the chain does not know transaction ${txHash}`;
  if (!receipt.isSuccess) return `transaction ${txHash} was reverted`;
  const logs = parseEventLogs({ abi: ABI, logs: receipt.logs }).filter(
    ({ args }) => args.chamberId === BigInt(event.chamberId),
  );
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
  if (receipt.blockNumber !== blockNumber) return `its block is ${receipt.blockNumber}`;
  return receipt.at === committedAt ? undefined : `the time of its block is ${receipt.at}`;
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

interface Receipt {
  readonly isSuccess: boolean;
  readonly blockNumber: number;
  /** Time of the block, ISO 8601 UTC. */
  readonly at: string;
  readonly logs: Log[];
}

/** The members that are read here. */
type RawReceipt = Pick<RpcTransactionReceipt, 'status' | 'blockNumber'> & Pick<Receipt, 'logs'>;

interface RpcResponse {
  readonly result?: unknown;
  readonly error?: { readonly message?: unknown };
}

const NO_ROOT = /^0x0*$/;
const OK = 200;

export class AuditedChain {
  readonly #rpcUrl: string;
  readonly registry: Address;

  constructor(rpcUrl: string, registry: Address) {
    this.#rpcUrl = rpcUrl;
    this.registry = registry;
  }

  /** The chamber's root in the registry, null before its commitment. Throws UnusableInput where there is no registry. */
  async rootOf(chamberId: number): Promise<Hex | null> {
    const data = encodeFunctionData({ abi: ABI, functionName: 'rootOf', args: [BigInt(chamberId)] });
    const { result } = await this.#send('eth_call', [{ to: this.registry, data }, 'latest']);
    try {
      const root = decodeFunctionResult({ abi: ABI, functionName: 'rootOf', data: result as Hex });
      return NO_ROOT.test(root) ? null : root;
    } catch {
      throw new UnusableInput(`the chain has no ChamberRegistry at ${this.registry}`);
    }
  }

  /** undefined for a transaction that the chain does not know, or that is not in a block yet. */
  async receipt(txHash: Hex): Promise<Receipt | undefined> {
    const receipt = (await this.#request('eth_getTransactionReceipt', [txHash])) as RawReceipt | null;
    if (receipt === null) return undefined;
    const block = await this.#request('eth_getBlockByNumber', [receipt.blockNumber, false]);
    const { timestamp } = (block ?? {}) as { readonly timestamp?: Hex };
    return {
      isSuccess: receipt.status === '0x1',
      blockNumber: Number(receipt.blockNumber),
      at: timestamp === undefined ? '' : toTimestamp(Number(timestamp) * 1000),
      logs: receipt.logs,
    };
  }

  async #request(method: string, params: readonly unknown[]): Promise<unknown> {
    const { result, error } = await this.#send(method, params);
    if (error !== undefined) throw new Unreachable(`the RPC rejected ${method}: ${String(error.message)}`);
    return result;
  }

  async #send(method: string, params: readonly unknown[]): Promise<RpcResponse> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const response = await send(this.#rpcUrl, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    });
    const text = await readText(response);
    if (response.status !== OK) throw new Unreachable(`the RPC returned status ${response.status} for ${method}`);
    try {
      return JSON.parse(text) as RpcResponse;
    } catch {
      throw new Unreachable(`the RPC response to ${method} is not JSON`);
    }
  }
}
