// The phases of a chamber as a line: which are over, which is on, and when each ends.

import type { PhaseEnds } from '../../projections/phase.ts';
import { knownEnds } from '../../projections/phase-ends.ts';
import { type Child, type Element, h } from '../html/element.ts';
import { DEADLINES, PHASES, type Phase } from '../vocabulary/values.ts';
import type { ChamberModel } from './chamber-model.ts';
import { PHASE_NAMES, time, timeLeft } from './format.ts';

interface Step {
  readonly ends: PhaseEnds;
  readonly index: number;
  readonly status: 'done' | 'current' | 'todo';
}

export function phaseStrip(model: ChamberModel, phase: Phase): Element {
  const current = PHASES.indexOf(phase);
  const ends = knownEnds(model.state, model.now);
  const steps = PHASES.map((each, index) => {
    const status = index < current || phase === 'COMMITTED' ? 'done' : index === current ? 'current' : 'todo';
    return h(
      'li',
      { class: status, 'aria-current': index === current ? 'step' : undefined },
      h('strong', {}, PHASE_NAMES[each]),
      endOf(model, { ends, index, status }),
    );
  });
  return h('ol', { class: 'phases', 'aria-label': 'Phases' }, ...steps);
}

/** The last phase has no end; its time is that of the block with the root. */
function endOf({ state, now, live }: ChamberModel, { ends, index, status }: Step): Child {
  const deadline = DEADLINES[index];
  if (deadline === undefined) {
    const { committed } = state.settlement;
    return committed !== null && h('span', {}, time(Date.parse(committed.committedAt), now));
  }
  const end = ends[deadline];
  const latest = state.deadlines[deadline];
  const before = DEADLINES[index - 1];
  const isEmpty = before !== undefined && state.deadlines[before] === latest;
  const past = end < latest && !isEmpty ? 'ended early ' : 'ended ';
  const future = state.rounds === null ? 'until ' : 'ends by ';
  return [
    h('span', {}, end <= now ? past : future, time(end, now)),
    // Its place is kept where there is nothing live yet.
    status === 'current' && end > now && h('b', { class: 'left' }, live && `${timeLeft(end, now)} left`),
  ];
}
