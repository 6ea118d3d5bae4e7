// Judges a failed deployment by repeating the expected call, and each logged one, at the block of the recorded time. The failed
// transaction alone proves nothing: its sender may have chosen a form, gas limit, account or time that makes it fail.
import type { Address } from 'viem';
import type { Idea } from '../../../projections/ideas.ts';
import type { RecordedTransaction } from '../../vocabulary/service-payloads.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { lowerCase } from '../context.ts';
import type { Problem } from '../report/findings.ts';
import { type ContractForm, formOf } from './calls.ts';
import type { AuditedChain, CallOutcome, ChainCall, Transaction } from './chain-reader.ts';
import { callOf, deployData, readTransaction } from './contracts.ts';
import { forEachConcurrently } from './recorded-block.ts';

export interface FailedDeployment {
  readonly chamberId: number;
  readonly idea: Idea;
  /** The deployment forms that the contracts accept. */
  readonly forms: readonly ContractForm[];
  /** The commitment's sender is the relayer. The senders of logged transactions may be any account. */
  readonly commitment: Transaction;
  readonly transaction: Transaction | undefined;
  readonly submitted: readonly RecordedTransaction[];
  readonly factories: readonly string[];
  readonly at: Millis;
}

export async function judgeFailure(failure: FailedDeployment, chain: AuditedChain): Promise<Problem> {
  const { commitment, transaction, forms, at, factories } = failure;
  const logged = await loggedCalls(failure);
  const undue = logged.find(({ form }) => !forms.includes(form));
  if (undue !== undefined)
    return `a ${undue.form} deployment is logged for it, which its registry’s contracts do not accept`;
  const wanted = distinct([...expectedCalls(failure), ...logged.map(({ call }) => call)]);
  if (wanted.length === 0)
    return { limit: 'another contract', why: 'the call of a quorum deployment is not in the log' };
  const block = await chain.blockAt(at, commitment.blockNumber);
  const relayers = await relayersOf(wanted, block, chain);
  if (relayers === undefined) return stateUnavailable(block);
  const executed = await executeAll(fromEachAccount(wanted, [commitment.from, ...relayers]), block, chain);
  const succeeded = executed.filter(({ outcome }) => outcome === 'success').map(({ call }) => lowerCase(call.to));
  if (succeeded.length === 0) return noSuccessProblem(wanted, executed, block);
  const called = new Set(logged.map(({ call }) => lowerCase(call.to)));
  const problem = `its call succeeds at block ${block}`;
  if (factories.length === 1 || succeeded.some((to) => called.has(to)))
    return await successProblem(problem, transaction, chain);
  const doubt = `${problem} when sent to ${succeeded[0]}, a contract that no logged transaction for this idea calls`;
  return { doubt: `${doubt}: name the service’s factory with --factory` };
}

/** If a contract rejects all known accounts, another account may succeed, so an honest service would have waited. */
function noSuccessProblem(wanted: readonly ChainCall[], executed: readonly ExecutedCall[], block: bigint): Problem {
  if (executed.some(({ outcome }) => outcome === 'refused'))
    return { doubt: `the RPC refuses to execute its call at block ${block}` };
  if (executed.some(({ outcome }) => outcome === 'no state')) return stateUnavailable(block);
  const failed = new Set(executed.filter(({ outcome }) => outcome === 'reverted').map(({ call }) => keyOf(call)));
  const open = wanted.find((call) => !failed.has(keyOf(call)));
  return open && { doubt: `${open.to} does not accept its call from any known account at block ${block}` };
}

function stateUnavailable(block: bigint): Problem {
  return { needs: 'chain', why: `the RPC does not have the state of block ${block}` };
}

/** If the call also succeeds with the transaction's gas, earlier transactions in the block may have made the transaction fail. */
async function successProblem(problem: string, transaction: Transaction | undefined, chain: AuditedChain) {
  if (!transaction?.to) return problem;
  const { from, to, input: data, value, gas, accessList, blockNumber } = transaction;
  const outcome = await chain.call({ from, to, data, value, gas, accessList }, blockNumber);
  if (outcome === 'reverted' || outcome === 'caller refused') return problem;
  const why =
    outcome === 'success' ? 'as its transaction should have' : `and the RPC can’t execute it at block ${blockNumber}`;
  return { doubt: `${problem}, ${why}: the chain does not show why the transaction failed` };
}

/** The operator chooses parts of a quorum deployment, so only the reference form has an expected call. */
function expectedCalls({ chamberId, idea, forms, commitment, factories }: FailedDeployment): readonly ChainCall[] {
  if (!forms.includes('reference')) return [];
  const data = deployData(chamberId, idea);
  return factories.map((to) => ({ from: commitment.from, to: to as Address, data }));
}

interface LoggedCall {
  readonly call: ChainCall;
  readonly form: ContractForm;
}

/** Returns the logged calls that deploy the idea, and the failed transaction's; other checks report calls that don't deploy it. */
async function loggedCalls({ chamberId, idea, submitted, transaction }: FailedDeployment) {
  const logged: LoggedCall[] = [];
  const add = (call: string, { to, ...rest }: Omit<ChainCall, 'to'> & { readonly to?: Address | null | undefined }) => {
    const form = formOf(call, chamberId, idea);
    if (form !== undefined && to) logged.push({ form, call: { ...rest, to } });
  };
  for (const { rawTransaction } of submitted) {
    const signed = rawTransaction && (await readTransaction(rawTransaction).catch(() => undefined));
    if (!signed) continue;
    const { from, to, data, value } = signed;
    add(signed.call, { from, to, data, value });
  }
  if (transaction === undefined) return logged;
  const { from, to, input: data, value } = transaction;
  add(callOf(transaction), { from, to, data, value });
  return logged;
}

function distinct(calls: readonly ChainCall[]): readonly ChainCall[] {
  return [...new Map(calls.map((call) => [`${lowerCase(call.from)} ${keyOf(call)}`, call])).values()];
}

/** Identifies a call regardless of the calling account. */
function keyOf({ to, data, value = 0n }: ChainCall): string {
  return lowerCase([to, data, value].join(' '));
}

/**
 * Returns the relayers that the contracts name at the block, because the owner may have changed them after the commitment; undefined if
 * the RPC lacks the block's state.
 */
async function relayersOf(
  calls: readonly ChainCall[],
  block: bigint,
  chain: AuditedChain,
): Promise<readonly Address[] | undefined> {
  const contracts = [...new Set(calls.map(({ to }) => lowerCase(to)))];
  const found: Address[] = [];
  for (const contract of contracts) {
    const relayer = await chain.relayerOf(contract, block);
    if (relayer === 'unknown') return undefined;
    if (relayer !== undefined) found.push(relayer);
  }
  return found;
}

function fromEachAccount(calls: readonly ChainCall[], relayers: readonly Address[]): readonly ChainCall[] {
  return distinct(calls.flatMap((call) => [call, ...relayers.map((from) => ({ ...call, from }))]));
}

interface ExecutedCall {
  readonly call: ChainCall;
  readonly outcome: CallOutcome;
}

async function executeAll(calls: readonly ChainCall[], block: bigint, chain: AuditedChain) {
  const executed: ExecutedCall[] = [];
  await forEachConcurrently(calls, async (call) => {
    executed.push({ call, outcome: await chain.call(call, block) });
  });
  return executed;
}
