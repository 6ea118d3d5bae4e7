// Checks, without sending anything, that the chain and its RPC support the fees, nonces and gas estimates that the relayer needs.
import type { Address } from 'viem';
import { type Block, orRevert, readGas, readNonce, readPendingNonce } from './chain-client.ts';
import { SIMULATED_COMMIT } from './contracts.ts';
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
    return mismatch('RPC_URL', problem);
  }
  const fees = await probeFees(rpc, head, sender);
  const nonces = await probeNonces(rpc, sender).catch(fromError);
  return mergeReports(fees, nonces);
}

/** Checks that the node estimates gas, and that the call fits in a block. */
export async function probeGas(rpc: Rpc, { gasLimit }: Block, sender: Sender): Promise<SendingReport> {
  const { relayer: from, registryAddress: to } = sender;
  const call = { from, to, data: SIMULATED_COMMIT };
  try {
    // findWiringFaults reports reverts.
    const estimate = await orRevert(readGas(rpc, call));
    if (!('result' in estimate) || gasLimit === undefined || estimate.result <= gasLimit) return NOTHING;
    return mismatch('RPC_URL', `commitChamber needs ${estimate.result} gas, and a block has ${gasLimit}`);
  } catch (error) {
    return fromError(error);
  }
}

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
    return 'excess' in offer ? warning('FEE_MAX_GWEI', offer.excess) : NOTHING;
  } catch (error) {
    if (!isRejection(error)) throw error;
    return mismatch('FEE_TIP_GWEI', `${error.message}: set the tip to offer`);
  }
}

async function probeNonces(rpc: Rpc, { relayer }: Sender): Promise<SendingReport> {
  const [mined, pending] = [await readNonce(rpc, relayer), await readPendingNonce(rpc, relayer)];
  if (pending <= mined) return NOTHING;
  const problem = `${pending - mined} transactions of ${relayer} wait for a block: no other program may use the account`;
  return warning('RELAYER_PRIVATE_KEY', problem);
}

function fromError(error: unknown): SendingReport {
  if (!isRejection(error)) throw error;
  const report = isUnknownMethod(error) ? mismatch : warning;
  return report('RPC_URL', error.message);
}

function mismatch(variable: string, problem: string): SendingReport {
  return { mismatches: [{ variable, problem }], warnings: [] };
}

function warning(variable: string, problem: string): SendingReport {
  return { mismatches: [], warnings: [{ variable, problem }] };
}
