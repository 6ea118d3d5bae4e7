// The relayer's two kinds of jobs: one commitChamber for each chamber and one deployIdea for each graduate. Creating a job is cheap: calldata and
// topics are encoded only when needed.
import { type Address, encodeEventTopics, type Hex, parseEventLogs } from 'viem';
import { graduates } from '../../projections/graduation.ts';
import type { Idea } from '../../projections/ideas.ts';
import { isClosed } from '../../projections/phase.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import type { ServiceFact } from '../vocabulary/events.ts';
import type { RecordedTransaction, RelayTransaction } from '../vocabulary/service-payloads.ts';
import { toTimestamp } from '../vocabulary/values.ts';
import { WITHHELD_TEXT } from '../vocabulary/withheld.ts';
import type { Block, LogFilter, Logs } from './chain-client.ts';
import type { ClosedChamber, RelayerConfig, RelayerContext } from './context.ts';
import { commitChamberCall, creatorOf, FACTORY_ABI, REGISTRY_ABI } from './contracts.ts';

export interface Job {
  /** Unique; shown in log lines and alerts. */
  readonly name: string;
  readonly chamberId: number;
  /** The root of the chamber, whether or not it is committed. */
  readonly root: Hex;
  readonly contract: Address;
  /** The current account's transactions for this job, oldest first. */
  readonly submitted: readonly RelayTransaction[];
  /** The transactions of all accounts, because an operator may change the key. */
  readonly logged: readonly RecordedTransaction[];
  /** Null while the job is open. */
  readonly outcome: { readonly txHash: Hex | null } | null;
  /** Returns the calldata, up to 25 KB. */
  readonly call: () => Hex;
  /** In wei. */
  readonly value: bigint;
  /** Returns the call of a view that returns zero until the job is done; undefined if the contract has no such view. */
  readonly doneCall: (() => Hex) | undefined;
  /** The topics of the event that completes the job. */
  readonly topics: () => LogFilter['topics'];
  /** Finds that event among logs of the contract. */
  readonly find: (logs: Logs) => Completion | undefined;
  readonly submission: (transaction: RelayTransaction) => ServiceFact;
  /** Why the job must not be signed any more: a text that it would send to the chain is withheld. */
  readonly withheld: string | undefined;
  /** The event to record for a final revert; undefined if the relayer must retry indefinitely. */
  readonly failure: ((reason: string, txHash: Hex | null) => ServiceFact) | undefined;
}

export interface Completion {
  readonly txHash: Hex;
  /** Returns the event for the transaction's block. */
  readonly fact: (block: Block) => ServiceFact;
}

/** Returns open and finished jobs: the commitment, then the graduated ideas by slot. */
export async function jobsOf(
  chamber: ClosedChamber,
  { config, account, signers }: Pick<RelayerContext, 'config' | 'account' | 'signers'>,
): Promise<readonly Job[]> {
  const jobs = [commitJob(chamber, config)];
  if (chamber.state.settlement.committed !== null) {
    jobs.push(...graduates(chamber.state).map((idea) => deployJob(chamber, idea, config)));
  }
  return Promise.all(
    jobs.map(async (job) => ({ ...job, submitted: await signers.ownOf(account.address, job.logged) })),
  );
}

export async function readClosed(
  chamberIds: readonly number[],
  forum: RelayerContext['forum'],
): Promise<readonly ClosedChamber[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => forum.chamber(chamberId)));
  return chambers.filter((chamber) => chamber !== undefined).filter(({ state }) => isClosed(state, forum.now()));
}

/** Returns the chamber's logged transactions, of all accounts. */
export function transactionsOf({ state }: ClosedChamber): readonly RecordedTransaction[] {
  const { commitSubmitted, deployments } = state.settlement;
  return [...commitSubmitted, ...[...deployments.values()].flatMap(({ submitted }) => submitted)];
}

/** Whether neither the recorded outcome's transaction nor a later one is in a block any more. `nonce` is the first unused nonce. */
export function isLost({ submitted, outcome }: Job, nonce: number): boolean {
  const done = submitted.findIndex(({ txHash }) => txHash === outcome?.txHash);
  return done >= 0 && submitted.slice(done).every((transaction) => transaction.nonce >= nonce);
}

type LoggedJob = Omit<Job, 'submitted'>;

function commitJob({ state, root }: ClosedChamber, { registryAddress }: RelayerConfig): LoggedJob {
  const { chamberId, moveCount: eventCount, settlement } = state;
  const event = { abi: REGISTRY_ABI, eventName: 'ChamberCommitted', args: { chamberId: BigInt(chamberId) } } as const;
  return {
    name: `chamber ${chamberId}`,
    chamberId,
    root,
    contract: registryAddress,
    logged: settlement.commitSubmitted,
    outcome: settlement.committed,
    call: () => commitChamberCall(chamberId, root),
    value: 0n,
    doneCall: undefined,
    topics: () => encodeEventTopics(event),
    find(logs) {
      const found = parseEventLogs({ ...event, logs: [...logs] }).find(({ args }) => args.root === root);
      if (found === undefined) return undefined;
      const { transactionHash: txHash } = found;
      const fact = ({ number: blockNumber, at }: Block): ServiceFact => ({
        type: 'chamber.committed',
        payload: { merkleRoot: root, eventCount, txHash, blockNumber, committedAt: toTimestamp(at) },
      });
      return { txHash, fact };
    },
    submission: (payload) => ({ type: 'relay.commit_submitted', payload }),
    withheld: undefined,
    failure: undefined,
  };
}

function deployJob(
  { state, root }: ClosedChamber,
  idea: Idea,
  { factoryAddress, contracts }: RelayerConfig,
): LoggedJob {
  const { chamberId } = state;
  const { ideaId, ticker } = idea;
  const id = BigInt(chamberId);
  const event = { abi: FACTORY_ABI, eventName: 'IdeaDeployed' } as const;
  const { submitted: logged, outcome } = deploymentOf(state.settlement, ideaId);
  const { doneCall } = contracts;
  return {
    name: `chamber ${chamberId}, ${ideaId}`,
    chamberId,
    root,
    contract: factoryAddress,
    logged,
    outcome,
    call: () => contracts.deployCall(chamberId, idea),
    value: contracts.deployValue,
    doneCall: doneCall && (() => doneCall(chamberId, idea)),
    topics: () => encodeEventTopics({ ...event, args: { chamberId: id, creator: creatorOf(idea) } }),
    find(logs) {
      // Tickers are unique within a chamber.
      const events = parseEventLogs({ ...event, logs: [...logs] });
      const found = events.find(({ args }) => args.chamberId === id && args.ticker === ticker);
      if (found === undefined) return undefined;
      const { transactionHash: txHash, args } = found;
      const fact = ({ at }: Block): ServiceFact => ({
        type: 'idea.deployed',
        payload: { ideaId, tokenAddress: args.ideaToken, txHash, graduatedAt: toTimestamp(at) },
      });
      return { txHash, fact };
    },
    withheld: withheldReason(idea, logged.length > 0),
    submission: (transaction) => ({ type: 'relay.deploy_submitted', payload: { ideaId, ...transaction } }),
    failure: (reason, txHash) => ({ type: 'idea.deploy_failed', payload: { ideaId, txHash, reason } }),
  };
}

/** Only an idea without transactions fails with WITHHELD_TEXT: then the log shows that the text never left the service. */
function withheldReason({ withheldTexts }: Idea, isSubmitted: boolean): string | undefined {
  if (withheldTexts.length === 0) return undefined;
  return isSubmitted ? 'not signed again: a text of the idea is withheld' : WITHHELD_TEXT;
}
