// Describes a chamber's events for people, one line each.
import type { ChamberState } from '../../projections/chamber.ts';
import type { Names } from '../moves/move.ts';
import { narrateEvent } from '../moves/narrate.ts';
import { paint } from '../process/terminal.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import type { Phase } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';

/** `state` is the chamber's state after the event. */
export function narrate(event: ChamberEvent, state: ChamberState, agent: Names['agent']): string {
  const text = narrateEvent(event, {
    agent,
    idea: (ideaId) => tickerOf(state, ideaId),
    words: (words) => `“${words}”`,
  });
  const who = event.did === null ? 'relayer' : agent(event.did);
  return `${paint('dim', String(event.eventId).padStart(4))}  ${paint('cyan', visibleLine(who).padEnd(9))} ${visibleLine(text)}`;
}

const HEADING_CHARS = 60;

export function phaseHeading(phase: Phase): string {
  return `\n${paint('bold', `── ${phase} ${'─'.repeat(HEADING_CHARS - phase.length)}`)}`;
}

export function tickerOf(state: ChamberState, ideaId: string | null): string {
  return state.ideas.find((idea) => idea.ideaId === ideaId)?.ticker ?? 'everything';
}
