// Fees (EIP-1559): what the network asks for now, and how far a stuck transaction's may be raised.
import { type Head, readPriorityFee } from './chain.ts';
import type { Rpc } from './rpc.ts';

/** Wei per unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** Nodes take a replacement from 10 % more on; an eighth more leaves room for their rounding. */
const RAISE_DIVISOR = 8n;

/** Beyond this multiple of what the network asks for, the fee is not what holds a transaction up. */
const FEE_FACTOR_MAX = 4n;

/** Twice the base fee outlasts six full blocks in a row. */
export async function networkFees(rpc: Rpc, { baseFeePerGas }: Head): Promise<Fees> {
  const maxPriorityFeePerGas = await readPriorityFee(rpc);
  return { maxFeePerGas: 2n * baseFeePerGas + maxPriorityFeePerGas, maxPriorityFeePerGas };
}

/** Fees that replace `fees` at the same nonce, at least the network's; undefined when more would not help. */
export function raisedFees(fees: Fees, network: Fees): Fees | undefined {
  if (fees.maxFeePerGas >= FEE_FACTOR_MAX * network.maxFeePerGas) return undefined;
  return {
    maxFeePerGas: larger(raised(fees.maxFeePerGas), network.maxFeePerGas),
    maxPriorityFeePerGas: larger(raised(fees.maxPriorityFeePerGas), network.maxPriorityFeePerGas),
  };
}

function raised(fee: bigint): bigint {
  return fee + fee / RAISE_DIVISOR + 1n;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
