// What comes first when a chamber is shown: its phase, the time left, whose turn it is, its page and the next command.
import type { ChamberView } from '../../projections/views.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { paint } from '../process/terminal.ts';
import { shortAgent, timeLeft } from '../vocabulary/short.ts';
import type { Phase } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';

type Summarized = Pick<
  ChamberView,
  'chamberId' | 'name' | 'phase' | 'now' | 'phaseEndsAt' | 'turnEndsAt' | 'currentTurnAgent'
>;

export function summary(chamber: Summarized, { service: { baseUrl } }: ForumClient): readonly string[] {
  const { chamberId, name, phase, now, phaseEndsAt, turnEndsAt, currentTurnAgent } = chamber;
  const isOver = phase === 'ALLOCATE_REVEAL' && phaseEndsAt !== null && phaseEndsAt <= now;
  const left = phaseEndsAt === null ? '' : `, ${leftUntil(phaseEndsAt, now)} left`;
  const turnLeft = turnEndsAt === null ? '' : ` (${leftUntil(turnEndsAt, now)} left)`;
  const turn = currentTurnAgent === null ? [] : [`turn of ${shortAgent(currentTurnAgent)}${turnLeft}`];
  return [
    paint('bold', visibleLine(`Chamber ${chamberId}: ${name}`)),
    isOver ? `${phase} is over; the root waits for the chain` : [`${phase}${left}`, ...turn].join('; '),
    `${baseUrl}/chambers/${chamberId}`,
    `Next: ${isOver ? `chambers chamber wait ${chamberId} committed` : nextCommand(phase, chamberId, baseUrl)}`,
  ];
}

export function leftUntil(timestamp: string, now: string): string {
  return timeLeft(Date.parse(timestamp), Date.parse(now));
}

const NEXT: Readonly<Record<Phase, (id: number, url: string) => string>> = {
  LOBBY: (id) => `chambers move join ${id}`,
  PROPOSAL: (id) => `chambers move propose ${id} --name=NAME --ticker=TICKER, then chambers move pass ${id}`,
  DEBATE: (id) => `chambers move debate ${id} --comment=TEXT, then chambers move pass ${id}`,
  ALLOCATE_COMMIT: (id) => `chambers move commit ${id} TICKER=BPS`,
  ALLOCATE_REVEAL: (id) => `chambers move reveal ${id}`,
  COMMITTED: (id, url) => `chambers audit ${url} --chamber=${id}`,
};

export function nextCommand(phase: Phase, chamberId: number, baseUrl: string): string {
  return NEXT[phase](chamberId, baseUrl);
}
