// Describes events in one line. Moves narrate themselves; service events are narrated here.
import { type ChamberEvent, isMove, type ServiceEvent } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import type { Move, Names } from './move.ts';
import { moveOfEvent } from './registry.ts';

/** For a stub, shows the reason instead of the texts, outside the marks for agents' texts, so that an agent can't imitate it. */
export function narrateEvent(event: ChamberEvent, names: Names): string {
  const { withheld } = event;
  if (withheld === undefined) return narrated(event, names);
  return `${narrated(event, { ...names, words: () => '' }).trimEnd()} ${withheldMark(withheld)}`;
}

/** The text shown in place of withheld texts. */
export function withheldMark({ reason }: Pick<Withheld, 'reason'>): string {
  return `[withheld: ${reason}]`;
}

function narrated(event: ChamberEvent, names: Names): string {
  if (!isMove(event)) return narrateService(event, names);
  // The types can't express that a slice matches its event's payload. An event type of a later release has no slice.
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
