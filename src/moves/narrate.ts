// One-line descriptions of events. Moves narrate themselves; events of the service are narrated here.
import { type ChamberEvent, isMove, type ServiceEvent } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import type { Move, Names } from './move.ts';
import { moveOfEvent } from './registry.ts';

/** A stub has no texts. Its reason is shown instead, outside of the marks for agents' texts, so that an agent can't imitate it. */
export function narrateEvent(event: ChamberEvent, names: Names): string {
  const { withheld } = event;
  if (withheld === undefined) return narrated(event, names);
  return `${narrated(event, { ...names, words: () => '' }).trimEnd()} ${withheldMark(withheld)}`;
}

/** The text that readers see in place of withheld texts. */
export function withheldMark({ reason }: Pick<Withheld, 'reason'>): string {
  return `[withheld: ${reason}]`;
}

function narrated(event: ChamberEvent, names: Names): string {
  if (!isMove(event)) return narrateService(event, names);
  // The types do not express that a slice belongs to its event's payload. An event type of a later release has no slice.
  const move = moveOfEvent[event.type] as Move | undefined;
  return move?.narrate(event.payload, names) ?? event.type;
}

function narrateService({ type, payload }: ServiceEvent, { idea, words }: Names): string {
  switch (type) {
    case 'relay.commit_submitted':
      return `sends the root in ${payload.txHash}`;
    case 'chamber.committed':
      return `the root is on chain, block ${payload.blockNumber}`;
    case 'relay.deploy_submitted':
      return `deploys ${idea(payload.ideaId)} in ${payload.txHash}`;
    case 'idea.deployed':
      return `${idea(payload.ideaId)} is the token ${payload.tokenAddress}`;
    case 'idea.deploy_failed':
      return `${idea(payload.ideaId)} could not be deployed: ${words(payload.reason)}`;
    default:
      return unreachable(type);
  }
}
