// The first lines about a chamber: its phase, the time left, the member in turn, its page and the next command.
import type { ChamberView } from '../../projections/views.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { paint } from '../process/terminal.ts';
import { shortAgent, timeLeft } from '../vocabulary/short.ts';
import { instantOf, type Phase } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { given as givenOptions, type Input } from './command.ts';

type Summarized = Pick<
  ChamberView,
  'chamberId' | 'name' | 'phase' | 'now' | 'phaseEndsAt' | 'turnEndsAt' | 'currentTurnAgent'
>;

export function summary(chamber: Summarized, { service: { baseUrl } }: ForumClient, input: Input): readonly string[] {
  const { chamberId, name, phase, now, phaseEndsAt, turnEndsAt, currentTurnAgent } = chamber;
  const isOver = phase === 'ALLOCATE_REVEAL' && phaseEndsAt !== null && phaseEndsAt <= now;
  const left = phaseEndsAt === null ? '' : `, ${leftUntil(phaseEndsAt, now)} left`;
  const turnLeft = turnEndsAt === null ? '' : ` (${leftUntil(turnEndsAt, now)} left)`;
  const turn = currentTurnAgent === null ? [] : [`turn of ${shortAgent(currentTurnAgent)}${turnLeft}`];
  return [
    paint('bold', visibleLine(`Chamber ${chamberId}: ${name}`)),
    isOver ? `${phase} is over; the root is waiting for the chain` : [`${phase}${left}`, ...turn].join('; '),
    `${baseUrl}/chambers/${chamberId}`,
    isOver
      ? `Next: chambers chamber wait ${chamberId} committed${givenOptions(input)}`
      : `${WHO[phase]}: ${nextCommand(phase, chamberId, baseUrl, input)}`,
  ];
}

export function leftUntil(timestamp: string, now: string): string {
  return timeLeft(instantOf(timestamp), instantOf(now));
}

const WHO: Readonly<Record<Phase, string>> = {
  LOBBY: 'Next',
  PROPOSAL: 'Next, for the member in turn',
  DEBATE: 'Next, for the member in turn',
  ALLOCATE_COMMIT: 'Next, for members that have not committed',
  ALLOCATE_REVEAL: 'Next, for members that have not revealed',
  COMMITTED: 'Next',
};

/** `given` contains the options that the next command needs too. */
const NEXT: Readonly<Record<Phase, (id: number, given: string, url: string) => string>> = {
  LOBBY: (id, given) => `chambers move join ${id}${given}`,
  PROPOSAL: (id, given) =>
    `chambers move propose ${id} --name=NAME --ticker=TICKER${given}, then chambers move pass ${id}${given}`,
  DEBATE: (id, given) => `chambers move debate ${id} --comment=TEXT${given}, then chambers move pass ${id}${given}`,
  ALLOCATE_COMMIT: (id, given) => `chambers move commit ${id} TICKER=BPS${given}`,
  ALLOCATE_REVEAL: (id, given) => `chambers move reveal ${id}${given}`,
  COMMITTED: (id, _given, url) => `chambers audit ${url} --chamber=${id}`,
};

export function nextCommand(phase: Phase, chamberId: number, baseUrl: string, input: Input): string {
  return NEXT[phase](chamberId, givenOptions(input), baseUrl);
}
