// Decides whether a service fact may follow in a closed chamber. The pipeline checks this before appending, the auditor when reading.
// Whether the chain agrees is checked elsewhere.
import type { ChamberState } from '../../projections/chamber.ts';
import { isGraduate } from '../../projections/graduation.ts';
import { isClosed } from '../../projections/phase.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import type { ServiceFact } from '../vocabulary/events.ts';
import type { RecordedTransaction } from '../vocabulary/service-payloads.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Millis } from '../vocabulary/values.ts';

/** A service fact contradicts the chamber's log. In the service, this is a bug in the relayer, which no caller sees. */
export class ServiceFactRejected extends Error {
  override readonly name = 'ServiceFactRejected';
}

/**
 * Throws ServiceFactRejected unless `fact` may follow `state` at `now`. The caller must check the Merkle root of `chamber.committed`,
 * because only the caller has the tree.
 */
export function decideServiceFact(state: ChamberState | null, fact: ServiceFact, now: Millis): void {
  if (state === null) reject(fact, 'comes before the creation of its chamber');
  if (!isClosed(state, now)) reject(fact, 'comes before the reveal deadline');
  const { committed, commitSubmitted } = state.settlement;
  switch (fact.type) {
    case 'relay.commit_submitted':
      if (committed !== null) requireReplacement(fact, commitSubmitted, 'the commitment');
      return;
    case 'chamber.committed':
      if (committed !== null) reject(fact, 'comes after the commitment');
      if (fact.payload.eventCount !== state.moveCount) {
        reject(fact, `has eventCount ${fact.payload.eventCount}, but the chamber has ${state.moveCount} moves`);
      }
      return;
    case 'relay.deploy_submitted':
    case 'idea.deployed':
    case 'idea.deploy_failed': {
      const { ideaId } = fact.payload;
      if (committed === null) reject(fact, 'comes before the commitment');
      if (!state.ideas.some((idea) => idea.ideaId === ideaId))
        reject(fact, `is about ${JSON.stringify(ideaId)}, which does not exist`);
      if (!isGraduate(state, ideaId)) reject(fact, `is about ${JSON.stringify(ideaId)}, which did not graduate`);
      const { outcome, submitted } = deploymentOf(state.settlement, ideaId);
      if (outcome === null) return;
      if (fact.type !== 'relay.deploy_submitted') reject(fact, `comes after the outcome of ${ideaId}`);
      requireReplacement(fact, submitted, `the outcome of ${ideaId}`);
      return;
    }
    default:
      unreachable(fact);
  }
}

/**
 * A reorganization may remove transactions from the chain after an outcome. The relayer then signs a transaction again, with the same nonce
 * and a higher fee, or with a lower nonce that fills a gap.
 */
function requireReplacement(
  fact: ServiceFact & { readonly payload: RecordedTransaction },
  submitted: readonly RecordedTransaction[],
  outcome: string,
): void {
  if (submitted.some(({ nonce }) => nonce >= fact.payload.nonce)) return;
  reject(fact, `comes after ${outcome} and replaces no transaction`);
}

function reject({ type }: ServiceFact, problem: string): never {
  throw new ServiceFactRejected(`${type} ${problem}`);
}
