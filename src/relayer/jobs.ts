// The relayer's two kinds of work: one commitChamber for a chamber, one deployIdea for a graduate. A job is what the log
// says of it, the call to make, and how the chain's answer reads.
import type { Address, Hex } from 'viem';
import { graduates } from '../../projections/allocations.ts';
import type { Idea } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import type { RelayTransaction, ServiceFact } from '../vocabulary/events.ts';
import { type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { Log } from './chain.ts';
import {
  chamberCommittedTopics,
  commitChamberCall,
  deployIdeaCall,
  findChamberCommitted,
  findIdeaDeployed,
  ideaDeployedTopics,
  type Place,
} from './contracts.ts';
import type { ClosedChamber, RelayerConfig } from './port.ts';

export interface Job {
  /** Unique, and readable in a line of the service's own log. */
  readonly name: string;
  readonly chamberId: number;
  /** The root that the registry holds, or is to hold. */
  readonly root: Hex;
  readonly to: Address;
  readonly data: Hex;
  /** The topics of the event that says it is done. */
  readonly topics: readonly (Hex | null)[];
  /** Every transaction signed for it, oldest first. */
  readonly submitted: readonly RelayTransaction[];
  readonly submission: (transaction: RelayTransaction) => ServiceFact;
  /** The event that says it is done, among logs of the contract. */
  readonly find: (logs: readonly Log[]) => Completion | undefined;
  /** The fact of a revert that is final; undefined where the relayer must insist. */
  readonly failure: ((reason: string, txHash: Hex | null) => ServiceFact) | undefined;
}

export interface Completion extends Place {
  /** Takes the time of the block. */
  readonly fact: (at: Millis) => ServiceFact;
}

type Addresses = Pick<RelayerConfig, 'registryAddress' | 'factoryAddress'>;

/** What is left to do: the commitment alone until it is recorded, then every graduate without an outcome, by slot. */
export function openJobs(chamber: ClosedChamber, addresses: Addresses): readonly Job[] {
  const { settlement } = chamber.state;
  if (settlement.committed === null) return [commitJob(chamber, addresses)];
  return graduates(chamber.state)
    .filter((idea) => deploymentOf(settlement, idea.ideaId).outcome === null)
    .map((idea) => deployJob(chamber, idea, addresses));
}

function commitJob({ state, root }: ClosedChamber, { registryAddress }: Addresses): Job {
  const { chamberId, moveCount: eventCount } = state;
  return {
    name: `chamber ${chamberId}`,
    chamberId,
    root,
    to: registryAddress,
    data: commitChamberCall(chamberId, root),
    topics: chamberCommittedTopics(chamberId),
    submitted: state.settlement.commitSubmitted,
    submission: (payload) => ({ type: 'relay.commit_submitted', payload }),
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
    to: factoryAddress,
    data: deployIdeaCall(chamberId, idea),
    topics: ideaDeployedTopics(chamberId, idea),
    submitted: deploymentOf(state.settlement, ideaId).submitted,
    submission: (transaction) => ({ type: 'relay.deploy_submitted', payload: { ideaId, ...transaction } }),
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
    failure: (reason, txHash) => ({ type: 'idea.deploy_failed', payload: { ideaId, txHash, reason } }),
  };
}
