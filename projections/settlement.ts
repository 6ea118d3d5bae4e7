// A chamber's result on the chain, folded from the service's events. The relayer has no other persistent state.
import type { ServiceEvent } from '../src/vocabulary/events.ts';
import type { RecordedTransaction, RelayTransaction, ServicePayloads } from '../src/vocabulary/service-payloads.ts';
import { unreachable } from '../src/vocabulary/unreachable.ts';

export type Committed = ServicePayloads['chamber.committed'];
export type Deployed = ServicePayloads['idea.deployed'];
export type DeployFailed = ServicePayloads['idea.deploy_failed'];

export interface Deployment {
  /** All transactions signed for the idea, oldest first. A replacement with a higher fee has the same nonce. */
  readonly submitted: readonly RecordedTransaction[];
  readonly outcome: Deployed | DeployFailed | null;
}

export interface Settlement {
  readonly commitSubmitted: readonly RelayTransaction[];
  readonly committed: Committed | null;
  /** The deployments by ideaId. */
  readonly deployments: ReadonlyMap<string, Deployment>;
  /** The last event about the contents of the chain. A settled chamber gets no more such events, but a transaction may be sent again. */
  readonly lastResultEventId: number | null;
}

export const NOT_SETTLED: Settlement = {
  commitSubmitted: [],
  committed: null,
  deployments: new Map(),
  lastResultEventId: null,
};

const NOT_DEPLOYED: Deployment = { submitted: [], outcome: null };

export function evolveSettlement(state: Settlement, event: ServiceEvent): Settlement {
  switch (event.type) {
    case 'relay.commit_submitted':
      return { ...state, commitSubmitted: [...state.commitSubmitted, event.payload] };
    case 'chamber.committed':
      return { ...state, committed: event.payload, lastResultEventId: event.eventId };
    case 'relay.deploy_submitted': {
      const { ideaId, ...transaction } = event.payload;
      const before = deploymentOf(state, ideaId);
      return withDeployment(state, ideaId, { ...before, submitted: [...before.submitted, transaction] });
    }
    case 'idea.deployed':
    case 'idea.deploy_failed': {
      const { ideaId } = event.payload;
      const after = withDeployment(state, ideaId, { ...deploymentOf(state, ideaId), outcome: event.payload });
      return { ...after, lastResultEventId: event.eventId };
    }
    default:
      return unreachable(event);
  }
}

export function deploymentOf(state: Settlement, ideaId: string): Deployment {
  return state.deployments.get(ideaId) ?? NOT_DEPLOYED;
}

export function isDeployed(outcome: Deployment['outcome']): outcome is Deployed {
  return outcome !== null && 'tokenAddress' in outcome;
}

function withDeployment(state: Settlement, ideaId: string, deployment: Deployment): Settlement {
  return { ...state, deployments: new Map(state.deployments).set(ideaId, deployment) };
}
