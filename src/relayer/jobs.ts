// The relayer's two kinds of work: one commitChamber for a chamber, one deployIdea for a graduate. A job is what the log
// says of it, the call to make, and how to read the chain's events. Making one is cheap: nothing is encoded before its use.
import type { Address, Hex } from 'viem';
import { graduates } from '../../projections/allocations.ts';
import type { Idea } from '../../projections/chamber.ts';
import { deploymentOf, type Settlement } from '../../projections/settlement.ts';
import type { RelayTransaction, ServiceFact } from '../vocabulary/events.ts';
import { type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { Log, Topic } from './chain-client.ts';
import {
  chamberCommittedTopics,
  commitChamberCall,
  deployIdeaCall,
  findChamberCommitted,
  findIdeaDeployed,
  ideaDeployedTopics,
  type Place,
  rootOfCall,
  tokenOfCall,
} from './contracts.ts';
import type { ClosedChamber, RelayerConfig } from './port.ts';
import { signedBy } from './transactions.ts';

export interface Job {
  /** Unique, and readable in a line of the service's own log. */
  readonly name: string;
  readonly chamberId: number;
  /** The root that the registry holds, or is to hold. */
  readonly root: Hex;
  readonly contract: Address;
  /** Every transaction that the account has signed for it, oldest first. */
  readonly submitted: readonly RelayTransaction[];
  /** What has become of it according to the log; null while it is open. */
  readonly outcome: { readonly txHash: Hex | null } | null;
  /** The calldata: up to 25 KB, so it is made when a transaction is signed and not before. */
  readonly call: () => Hex;
  /** A view that returns other than zero when the job is done, on contracts that have it. */
  readonly doneCall: () => Hex;
  /** The topics of the event that completes it. */
  readonly topics: () => readonly Topic[];
  /** The event that completes it, among logs of the contract. */
  readonly find: (logs: readonly Log[]) => Completion | undefined;
  readonly submission: (transaction: RelayTransaction) => ServiceFact;
  /** The fact of a final revert; undefined where the relayer must keep trying. */
  readonly failure: ((reason: string, txHash: Hex | null) => ServiceFact) | undefined;
}

export interface Completion extends Place {
  /** Takes the time of the block. */
  readonly fact: (at: Millis) => ServiceFact;
}

type Addresses = Pick<RelayerConfig, 'registryAddress' | 'factoryAddress'>;

/** What is to do and what has been done by this account: the commitment, then the graduates by slot. */
export async function jobsOf(chamber: ClosedChamber, addresses: Addresses, account: Address): Promise<readonly Job[]> {
  const jobs = [commitJob(chamber, addresses)];
  if (chamber.state.settlement.committed !== null) {
    jobs.push(...graduates(chamber.state).map((idea) => deployJob(chamber, idea, addresses)));
  }
  return Promise.all(jobs.map(async (job) => ({ ...job, submitted: await signedBy(account, job.submitted) })));
}

/** Every transaction of the log for a chamber, from any account. */
export function transactionsOf({ commitSubmitted, deployments }: Settlement): readonly RelayTransaction[] {
  return [...commitSubmitted, ...[...deployments.values()].flatMap(({ submitted }) => submitted)];
}

/** Whether it was done and no block has it any more, nor what was signed for it since; `nonce` is the first free one. */
export function isLost({ submitted, outcome }: Job, nonce: number): boolean {
  const done = submitted.findIndex(({ txHash }) => txHash === outcome?.txHash);
  return done >= 0 && submitted.slice(done).every((transaction) => transaction.nonce >= nonce);
}

function commitJob({ state, root }: ClosedChamber, { registryAddress }: Addresses): Job {
  const { chamberId, moveCount: eventCount } = state;
  return {
    name: `chamber ${chamberId}`,
    chamberId,
    root,
    contract: registryAddress,
    submitted: state.settlement.commitSubmitted,
    outcome: state.settlement.committed,
    call: () => commitChamberCall(chamberId, root),
    doneCall: () => rootOfCall(chamberId),
    topics: () => chamberCommittedTopics(chamberId),
    find(logs) {
      const found = findChamberCommitted(logs, chamberId);
      if (found?.root !== root) return undefined;
      const { txHash, blockNumber } = found;
      const fact = (at: Millis): ServiceFact => ({
        type: 'chamber.committed',
        payload: { merkleRoot: root, eventCount, txHash, blockNumber, committedAt: toTimestamp(at) },
      });
      return { txHash, blockNumber, fact };
    },
    submission: (payload) => ({ type: 'relay.commit_submitted', payload }),
    failure: undefined,
  };
}

function deployJob({ state, root }: ClosedChamber, idea: Idea, { factoryAddress }: Addresses): Job {
  const { chamberId } = state;
  const { ideaId } = idea;
  return {
    name: `chamber ${chamberId}, ${ideaId}`,
    chamberId,
    root,
    contract: factoryAddress,
    ...deploymentOf(state.settlement, ideaId),
    call: () => deployIdeaCall(chamberId, idea),
    doneCall: () => tokenOfCall(chamberId, idea),
    topics: () => ideaDeployedTopics(chamberId, idea),
    find(logs) {
      const found = findIdeaDeployed(logs, chamberId, idea);
      if (found === undefined) return undefined;
      const { txHash, blockNumber, token: tokenAddress } = found;
      const fact = (at: Millis): ServiceFact => ({
        type: 'idea.deployed',
        payload: { ideaId, tokenAddress, txHash, graduatedAt: toTimestamp(at) },
      });
      return { txHash, blockNumber, fact };
    },
    submission: (transaction) => ({ type: 'relay.deploy_submitted', payload: { ideaId, ...transaction } }),
    failure: (reason, txHash) => ({ type: 'idea.deploy_failed', payload: { ideaId, txHash, reason } }),
  };
}
