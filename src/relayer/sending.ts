// Checks, without sending anything, that the chain and its RPC support the fees, nonces and gas estimates that the relayer needs.
import type { Address, Hex } from 'viem';
import { type Block, orRevert, readGas, readNonce, readPendingNonce } from './chain-client.ts';
import { commitChamberCall, NO_CHAMBER } from './contracts.ts';
import { type FeeSettings, offerFees } from './fees.ts';
import { isRejection, isUnknownMethod, type Rpc } from './rpc.ts';
import type { Mismatch } from './wiring.ts';

interface Sender extends FeeSettings {
  readonly relayer: Address;
  readonly registryAddress: Address;
}

export interface SendingReport {
  /** Problems that prevent every transaction. */
  readonly mismatches: readonly Mismatch[];
  /** Problems that may be temporary. */
  readonly warnings: readonly Mismatch[];
}

/** Reports the node's JSON-RPC errors, and throws other errors. */
export async function probeSending(rpc: Rpc, head: Block, sender: Sender): Promise<SendingReport> {
  if (head.baseFeePerGas === undefined) {
    const problem =
      'the chain has no base fee (EIP-1559), which the relayer’s transactions need: use a chain that has one';
    return { mismatches: [{ variable: 'RPC_URL', problem }], warnings: [] };
  }
  const fees = await probeFees(rpc, head, sender);
  const nonces = await probeNonces(rpc, sender).catch(fromError);
  return mergeReports(fees, nonces);
}

/** Checks that the node estimates gas, and that the call fits in a block. */
export async function probeGas(rpc: Rpc, { gasLimit }: Block, sender: Sender): Promise<SendingReport> {
  const { relayer: from, registryAddress: to } = sender;
  const call = { from, to, data: commitChamberCall(NO_CHAMBER, ANY_ROOT) };
  try {
    // findWiringFaults reports reverts.
    const estimate = await orRevert(readGas(rpc, call));
    if (!('result' in estimate) || gasLimit === undefined || estimate.result <= gasLimit) return NOTHING;
    const problem = `commitChamber needs ${estimate.result} gas, and a block has ${gasLimit}`;
    return { mismatches: [{ variable: 'RPC_URL', problem }], warnings: [] };
  } catch (error) {
    return fromError(error);
  }
}

const ANY_ROOT: Hex = `0x${'11'.repeat(32)}`;
const NOTHING: SendingReport = { mismatches: [], warnings: [] };

export function mergeReports(...reports: readonly SendingReport[]): SendingReport {
  return {
    mismatches: reports.flatMap(({ mismatches }) => mismatches),
    warnings: reports.flatMap(({ warnings }) => warnings),
  };
}

async function probeFees(rpc: Rpc, head: Block, sender: Sender): Promise<SendingReport> {
  try {
    const offer = await offerFees(rpc, head, sender);
    if (!('excess' in offer)) return NOTHING;
    return { mismatches: [], warnings: [{ variable: 'FEE_MAX_GWEI', problem: offer.excess }] };
  } catch (error) {
    if (!isRejection(error)) throw error;
    const problem = `${error.message}: set the tip to offer`;
    return { mismatches: [{ variable: 'FEE_TIP_GWEI', problem }], warnings: [] };
  }
}

async function probeNonces(rpc: Rpc, { relayer }: Sender): Promise<SendingReport> {
  const [mined, pending] = [await readNonce(rpc, relayer), await readPendingNonce(rpc, relayer)];
  if (pending <= mined) return NOTHING;
  const problem = `${pending - mined} transactions of ${relayer} wait for a block: no other program may use the account`;
  return { mismatches: [], warnings: [{ variable: 'RELAYER_PRIVATE_KEY', problem }] };
}

function fromError(error: unknown): SendingReport {
  if (!isRejection(error)) throw error;
  const found = [{ variable: 'RPC_URL', problem: error.message }];
  return isUnknownMethod(error) ? { mismatches: found, warnings: [] } : { mismatches: [], warnings: found };
}
