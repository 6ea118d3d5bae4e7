// The fees of a transaction (EIP-1559) and their limit. Because of the limit, a node that suggests excessive fees can't drain the
// account.
import { type FeeValuesEIP1559 as Fees, formatGwei } from 'viem';
import { type Block, readFeeHistory, readPriorityFee } from './chain-client.ts';
import { isRejection, type Rpc, RpcError } from './rpc.ts';

export interface FeeSettings {
  /** Wei per gas, base fee and tip together; by default a multiple of recent fees. */
  readonly feeMaxWei?: bigint | undefined;
  /** Wei per gas, used if the RPC suggests no tip. */
  readonly tipWei?: bigint | undefined;
}

/** Fees and their limit, which also applies to raised fees; `excess` states how far the chain's fees are above the limit. */
export type FeeOffer = { readonly fees: Fees; readonly limit: bigint } | { readonly excess: string };

/** Fees up to this multiple of recent fees are considered normal for a busy hour. */
const TYPICAL_FACTOR = 10n;
/** The default limit is never below this, because fees of idle chains are close to zero. */
const DEFAULT_LIMIT_WEI_MIN = 50_000_000_000n;

/** Offers twice the base fee, which covers its growth over six full blocks. */
export async function offerFees(rpc: Rpc, head: Block, settings: FeeSettings): Promise<FeeOffer> {
  const { baseFeePerGas: base } = head;
  if (base === undefined) throw new RpcError('rejected', 'the chain has no base fee (EIP-1559)');
  const typical = await readTypicalFees(rpc);
  const tip = await suggestedTip(rpc, typical, settings);
  const limit = settings.feeMaxWei ?? defaultLimit(base, typical);
  if (base + tip > limit) return { excess: excess(base + tip, limit) };
  const maxFeePerGas = min(2n * base + tip, limit);
  return { fees: { maxFeePerGas, maxPriorityFeePerGas: tip }, limit };
}

function excess(required: bigint, limit: bigint): string {
  return `the chain asks for ${formatGwei(required)} gwei per gas, above the limit of ${formatGwei(limit)} (FEE_MAX_GWEI)`;
}

/** Medians of recent blocks, so that one odd or empty block does not matter. */
interface TypicalFees {
  readonly base: bigint;
  readonly tip: bigint;
}

/** Resolves to undefined if the node keeps no history. */
async function readTypicalFees(rpc: Rpc): Promise<TypicalFees | undefined> {
  try {
    const { baseFees, tips } = await readFeeHistory(rpc);
    return { base: median(baseFees), tip: median(tips.filter((tip) => tip > 0n)) };
  } catch (error) {
    if (isRejection(error)) return undefined;
    throw error;
  }
}

function median(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : Number(a > b)));
  return sorted[Math.floor(sorted.length / 2)] ?? 0n;
}

async function suggestedTip(rpc: Rpc, typical: TypicalFees | undefined, { tipWei }: FeeSettings): Promise<bigint> {
  try {
    return await readPriorityFee(rpc);
  } catch (error) {
    if (!isRejection(error)) throw error;
    if (typical !== undefined && typical.tip > 0n) return typical.tip;
    if (tipWei !== undefined) return tipWei;
    throw new RpcError('rejected', 'the RPC suggests no tip by eth_maxPriorityFeePerGas or eth_feeHistory');
  }
}

/** Uses the current base fee if it is higher than the median. The chain sets the base fee, so unlike the tip it can't be overpaid. */
function defaultLimit(base: bigint, typical: TypicalFees = { base, tip: 0n }): bigint {
  return max(TYPICAL_FACTOR * (max(base, typical.base) + typical.tip), DEFAULT_LIMIT_WEI_MIN);
}

/** Nodes require 10 % more for a replacement; an eighth leaves room for rounding. */
const RAISE_DIVISOR = 8n;
/** Above this multiple of the network's fee, a higher fee would not help a stuck transaction. */
const FEE_FACTOR_MAX = 4n;

/** Returns the fees of a replacement with the same nonce; undefined if a higher fee would not help. */
export function raisedFees(fees: Fees, offer: FeeOffer): Fees | { readonly excess: string } | undefined {
  if ('excess' in offer) return offer;
  const { fees: network, limit } = offer;
  if (fees.maxFeePerGas >= FEE_FACTOR_MAX * network.maxFeePerGas) return undefined;
  const raise = (fee: bigint, required: bigint) => max(fee + fee / RAISE_DIVISOR + 1n, required);
  const maxFeePerGas = raise(fees.maxFeePerGas, network.maxFeePerGas);
  if (maxFeePerGas > limit) return { excess: excess(maxFeePerGas, limit) };
  return { maxFeePerGas, maxPriorityFeePerGas: raise(fees.maxPriorityFeePerGas, network.maxPriorityFeePerGas) };
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
