// Whether a deployment that is said to have failed does fail: the call that is due, and every one that the log has, made again in the block of the
// recorded time. A transaction alone may fail for its form, gas, sender or time, all of which its sender chooses.
import type { Address } from 'viem';
import type { Idea } from '../../../projections/chamber.ts';
import type { RelayTransaction } from '../../vocabulary/service-payloads.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { forEachAtOnce } from '../at-once.ts';
import { lowerCase } from '../context.ts';
import type { Problem } from '../report/findings.ts';
import { type ContractForm, formOf } from './calls.ts';
import type { AuditedChain, CallOutcome, ChainCall, Transaction } from './chain-reader.ts';
import { callOf, deployData, readTransaction } from './contracts.ts';

export interface FailedDeployment {
  readonly chamberId: number;
  readonly idea: Idea;
  /** What deployments the contracts take. */
  readonly forms: readonly ContractForm[];
  /** Of the account that committed, which is the relayer's: any account can sign a transaction for the log. */
  readonly commitment: Transaction;
  /** The one that the failure names. */
  readonly transaction: Transaction | undefined;
  /** Those in the log. */
  readonly submitted: readonly RelayTransaction[];
  readonly factories: readonly string[];
  /** When the failure was recorded. */
  readonly at: Millis;
}

export async function judgeFailure(failure: FailedDeployment, chain: AuditedChain): Promise<Problem> {
  const { commitment, transaction, forms, at, factories } = failure;
  const logged = await loggedCalls(failure);
  const undue = logged.find(({ form }) => !forms.includes(form));
  if (undue !== undefined) return `a ${undue.form} deployment is logged for it, and its registry’s contracts take none`;
  const calls = distinct([...dueCalls(failure), ...logged.map(({ call }) => call)], commitment.from);
  if (calls.length === 0)
    return { limit: 'another contract', why: 'the call of a quorum deployment is not in the log' };
  const block = await chain.blockAt(at, commitment.blockNumber);
  const made = await makeAll(calls, block, chain);
  const succeeded = made.filter(({ outcome }) => outcome === 'success').map(({ call }) => lowerCase(call.to));
  if (succeeded.length > 0) {
    const called = new Set(logged.map(({ call }) => lowerCase(call.to)));
    const problem = `its call succeeds in block ${block}`;
    if (factories.length === 1 || succeeded.some((to) => called.has(to)))
      return await problemOfSuccess(problem, transaction, chain);
    const doubt = `${problem} at ${succeeded[0]}, which the log does not call for it`;
    return { doubt: `${doubt}: say with --factory which is the service’s` };
  }
  if (made.some(({ outcome }) => outcome === 'refused')) return { doubt: `the RPC refuses its call in block ${block}` };
  return made.some(({ outcome }) => outcome === 'no state')
    ? { needs: 'chain', why: `the RPC does not have the state of block ${block}` }
    : undefined;
}

/** Open is what a transaction that failed leaves open where its call succeeds with its gas: what else came before it in its block. */
async function problemOfSuccess(problem: string, transaction: Transaction | undefined, chain: AuditedChain) {
  if (!transaction?.to) return problem;
  const { from, to, input: data, value, gas, accessList, blockNumber } = transaction;
  const outcome = await chain.call({ from, to, data, value, gas, accessList }, blockNumber);
  if (outcome === 'reverted') return problem;
  const why = outcome === 'success' ? 'as its transaction should have' : `and the RPC can’t make it in ${blockNumber}`;
  return { doubt: `${problem}, ${why}: the chain does not show why that one failed` };
}

/** What a quorum deployment holds besides the idea is the operator's: no call of it is due that is not logged. */
function dueCalls({ chamberId, idea, forms, commitment, factories }: FailedDeployment): readonly ChainCall[] {
  if (!forms.includes('reference')) return [];
  const data = deployData(chamberId, idea);
  return factories.map((to) => ({ from: commitment.from, to: to as Address, data }));
}

interface LoggedCall {
  readonly call: ChainCall;
  readonly form: ContractForm;
}

/** The calls of the log, and of the transaction that the failure names, that deploy the idea: others are found in the lines. */
async function loggedCalls({ chamberId, idea, submitted, transaction }: FailedDeployment) {
  const logged: LoggedCall[] = [];
  const add = (call: string, { to, ...of }: Omit<ChainCall, 'to'> & { readonly to?: Address | null | undefined }) => {
    const form = formOf(call, chamberId, idea);
    if (form !== undefined && to) logged.push({ form, call: { ...of, to } });
  };
  for (const { rawTransaction } of submitted) {
    const signed = await readTransaction(rawTransaction).catch(() => undefined);
    if (signed === undefined) continue;
    const { from, to, data, value } = signed;
    add(signed.call, { from, to, data, value });
  }
  if (transaction === undefined) return logged;
  const { from, to, input: data, value } = transaction;
  add(callOf(transaction), { from, to, data, value });
  return logged;
}

/** Each call once, from its own account and from the relayer. */
function distinct(calls: readonly ChainCall[], relayer: Address): readonly ChainCall[] {
  const each = calls.flatMap((call) => [call, { ...call, from: relayer }]);
  const keyOf = ({ from, to, data, value }: ChainCall) => [from, to, data, value ?? 0n].join().toLowerCase();
  return [...new Map(each.map((call) => [keyOf(call), call])).values()];
}

async function makeAll(calls: readonly ChainCall[], block: bigint, chain: AuditedChain) {
  const made: { readonly call: ChainCall; readonly outcome: CallOutcome }[] = [];
  await forEachAtOnce(calls, async (call) => {
    made.push({ call, outcome: await chain.call(call, block) });
  });
  return made;
}
