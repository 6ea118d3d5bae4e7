// Shows the phases of a chamber as a strip, with their ends.
import { knownEnds } from '../../projections/phase-ends.ts';
import { type Child, type Element, h } from '../html/element.ts';
import { DEADLINES, instantOf, PHASES, type Phase } from '../vocabulary/values.ts';
import type { ChamberModel } from './chamber-model.ts';
import { PHASE_NAMES, time, timeLeft } from './format.ts';

export function phaseStrip(model: ChamberModel, phase: Phase): Element {
  const current = PHASES.indexOf(phase);
  const steps = PHASES.map((each, index) => {
    const status = index < current || phase === 'COMMITTED' ? 'done' : index === current ? 'current' : 'todo';
    const attributes = { class: status, 'aria-current': index === current ? 'step' : undefined };
    return h('li', attributes, h('strong', {}, PHASE_NAMES[each]), endOf(model, index, status === 'current'));
  });
  return h('ol', { class: 'phases', 'aria-label': 'Phases' }, ...steps);
}

/** The last phase has no end; it shows the time of the root's block. */
function endOf({ state, now, live }: ChamberModel, index: number, isCurrent: boolean): Child {
  const deadline = DEADLINES[index];
  if (deadline === undefined) {
    const { committed } = state.settlement;
    return committed !== null && h('span', {}, time(instantOf(committed.committedAt), now));
  }
  const end = knownEnds(state, now)[deadline];
  const latest = state.deadlines[deadline];
  const before = DEADLINES[index - 1];
  const isEmpty = before !== undefined && state.deadlines[before] === latest;
  const past = end < latest && !isEmpty ? 'ended early ' : 'ended ';
  const future = state.rounds === null ? 'until ' : 'ends by ';
  return [
    h('span', {}, end <= now ? past : future, time(end, now)),
    // Without a script, the empty element reserves the space.
    isCurrent && end > now && h('b', { class: 'left' }, live && `${timeLeft(end, now)} left`),
  ];
}
