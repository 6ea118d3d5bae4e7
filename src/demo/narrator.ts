// Tells phases and the tally; events are told as `chambers chamber tail` tells them.
import { tallies } from '../../projections/allocations.ts';
import type { ChamberState } from '../../projections/chamber.ts';
import { tickerOf } from '../cli/tell-event.ts';
import { paint } from '../terminal.ts';
import type { Phase } from '../vocabulary/values.ts';

export function tellPhase(phase: Phase): string {
  return `\n${paint('bold', `── ${phase} ${'─'.repeat(60 - phase.length)}`)}`;
}

export function tellTally(state: ChamberState): string {
  const rows = [...tallies(state)].map(([ideaId, { backers, totalBps }]) => {
    const isGraduate = backers >= state.minBackersForGraduation;
    const verdict = isGraduate ? paint('green', 'graduates') : 'stays an idea';
    return `      ${tickerOf(state, ideaId).padEnd(8)} ${String(totalBps).padStart(6)} bps  ${backers} backers  ${verdict}`;
  });
  return ['\n      Tally', ...rows].join('\n');
}
