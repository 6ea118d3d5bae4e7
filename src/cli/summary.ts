// The first lines about a chamber: phase, time left, member whose turn it is, page and next command.
import type { ChamberView } from '../../projections/views.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { paint } from '../process/terminal.ts';
import { shortAgent, timeLeft } from '../vocabulary/short.ts';
import { instantOf, type Phase } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { type Input, urlAndKeyOptions } from './command.ts';

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
      ? `Next: chambers chamber wait ${chamberId} committed${urlAndKeyOptions(input)}`
      : `${NEXT_LABELS[phase]}: ${nextCommand(phase, chamberId, baseUrl, input)}`,
  ];
}

export function leftUntil(timestamp: string, now: string): string {
  return timeLeft(instantOf(timestamp), instantOf(now));
}

const NEXT_LABELS: Readonly<Record<Phase, string>> = {
  LOBBY: 'Next',
  PROPOSAL: 'Next, for the member whose turn it is',
  DEBATE: 'Next, for the member whose turn it is',
  ALLOCATE_COMMIT: 'Next, for members that have not committed',
  ALLOCATE_REVEAL: 'Next, for members that have not revealed',
  COMMITTED: 'Next',
};

/** `options` are the options --url and --key, which the next command needs too. */
const NEXT: Readonly<Record<Phase, (id: number, options: string, url: string) => string>> = {
  LOBBY: (id, options) => `chambers move join ${id}${options}`,
  PROPOSAL: (id, options) =>
    `chambers move propose ${id} --name=NAME --ticker=TICKER${options}, then chambers move pass ${id}${options}`,
  DEBATE: (id, options) =>
    `chambers move debate ${id} --comment=TEXT${options}, then chambers move pass ${id}${options}`,
  ALLOCATE_COMMIT: (id, options) => `chambers move commit ${id} TICKER=BPS${options}`,
  ALLOCATE_REVEAL: (id, options) => `chambers move reveal ${id}${options}`,
  COMMITTED: (id, _options, url) => `chambers audit ${url} --chamber=${id}`,
};

export function nextCommand(phase: Phase, chamberId: number, baseUrl: string, input: Input): string {
  return NEXT[phase](chamberId, urlAndKeyOptions(input), baseUrl);
}
