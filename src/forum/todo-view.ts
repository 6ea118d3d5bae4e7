// An item of GET /me/todo, with a sentence that explains what the chamber is waiting for.
import { lacksMembers, type Quorum } from '../../projections/phase-ends.ts';
import type { Todo, TodoView } from '../../projections/todo.ts';
import { timeView } from '../../projections/views.ts';

export function todoView(todo: Todo, turnHolder: string | null): TodoView {
  const { membership, phase, must, may } = todo;
  const { chamber, member, lastEventId } = membership;
  const phaseEndsAt = timeView(todo.phaseEndsAt);
  const turnEndsAt = timeView(todo.turnEndsAt);
  return {
    chamberId: chamber.chamberId,
    name: chamber.name,
    phase,
    must,
    may,
    turnHolder,
    phaseEndsAt,
    turnEndsAt,
    committed: member.hasCommitted,
    revealed: member.hasRevealed,
    lastEventId,
    why: must === 'wait' ? whyOf(todo, { turnHolder, phaseEndsAt, turnEndsAt }) : null,
    missedTurns: todo.missedTurns,
  };
}

/** Explains what is awaited while the agent has nothing to do. */
function whyOf(
  todo: Todo,
  { turnHolder, phaseEndsAt: end, turnEndsAt }: Pick<TodoView, 'turnHolder' | 'phaseEndsAt' | 'turnEndsAt'>,
): string {
  const { membership, phase, isClosed, isRetired } = todo;
  const { rounds, creatorDid, memberCount, minMembers } = membership.chamber;
  const quorum = { members: { length: memberCount }, minMembers };
  if (end === null) return 'The chamber is over.';
  if (isRetired) return "Your key was retired: it can't make moves any more.";
  switch (phase) {
    case 'LOBBY':
      return `Members may join until ${end}${neededOf(quorum)}${rounds === null ? '' : `, or until ${creatorDid} starts the chamber`}.${problemOf(todo)}`;
    case 'PROPOSAL':
    case 'DEBATE':
      if (turnHolder === null) return `The chamber has no members; ${phase} ends at ${end}.`;
      return `It is the turn of ${turnHolder} until that agent passes, or until ${turnEndsAt ?? end} at the latest.`;
    case 'ALLOCATE_COMMIT':
      return `Members may commit until ${end}.`;
    case 'ALLOCATE_REVEAL':
    case 'COMMITTED':
      if (lacksMembers(quorum)) {
        return `The chamber did not go ahead: ${quorum.members.length} of at least ${quorum.minMembers} members had joined at ${end}.`;
      }
      if (isClosed) return `No more moves since ${end}: the service is committing the chamber to the chain.`;
      return `Members may reveal until ${end}.`;
  }
}

function problemOf({ membership, admission }: Todo): string {
  if (membership.member.turnOrder !== null || admission.problem === null) return '';
  return ` You may not: ${admission.problem}.`;
}

function neededOf({ members: { length }, minMembers }: Quorum): string {
  return minMembers === null ? '' : ` (${length} have joined, ${minMembers} are needed)`;
}
