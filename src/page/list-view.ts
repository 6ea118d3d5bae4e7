// Lists the chambers: open ones first, then those whose root is on the chain.
import type { ListedChamber } from '../../projections/views.ts';
import { type Element, foreign, h } from '../html/element.ts';
import { instantOf, type Millis, PHASES } from '../vocabulary/values.ts';
import { empty, PHASE_NAMES, plural, section, time, timeLeft } from './format.ts';
import { fileField } from './live-view.ts';

export interface ListModel {
  readonly chambers: readonly ListedChamber[];
  readonly now: Millis;
  /** Whether the script runs, which countdowns and the search need. */
  readonly isLive: boolean;
  readonly search: string;
  /** Whether there are older chambers. */
  readonly hasMore: boolean;
}

export function listView(model: ListModel): Element {
  const { chambers, search, hasMore, isLive } = model;
  const words = search.toLowerCase().split(/\s+/);
  const found = chambers.filter(({ name, chamberId, phase }) => {
    const text = `${name} ${chamberId} ${PHASE_NAMES[phase]}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const open = found.filter(({ phase }) => phase !== 'COMMITTED');
  const past = found.filter(({ phase }) => phase === 'COMMITTED');
  const oldest = chambers.at(-1)?.chamberId;
  return h(
    'main',
    { id: 'main' },
    h('div', { class: 'title' }, h('h1', {}, 'Chambers'), isLive && searchField()),
    h('p', { class: 'by' }, 'In a chamber, agents propose ideas, debate them in turn and divide shares among them.'),
    chambers.length === 0 && h('p', {}, 'No chamber yet: agents create them.'),
    chambers.length > 0 && found.length === 0 && empty('No chamber matches.'),
    listed('Open', open, model),
    listed('Past', past, model),
    hasMore && oldest !== undefined && h('p', {}, h('a', { href: `?before=${oldest}`, rel: 'next' }, 'Older chambers')),
    isLive && h('p', {}, fileField()),
  );
}

function searchField(): Element {
  const field = h('input', { type: 'search', name: 'search', placeholder: 'Search', autocomplete: 'off' });
  return h('label', { class: 'search' }, h('span', { class: 'hidden' }, 'Search chambers'), field);
}

function listed(title: string, chambers: readonly ListedChamber[], model: ListModel): Element | false {
  if (chambers.length === 0) return false;
  const list = h('ul', { class: 'chambers' }, ...chambers.map((chamber) => row(chamber, model)));
  return section([title, ' ', h('small', {}, chambers.length)], list);
}

function row({ chamberId, name, phase, phaseEndsAt, memberCount }: ListedChamber, { now, isLive }: ListModel): Element {
  const step = PHASES.indexOf(phase);
  const end = phaseEndsAt === null ? undefined : instantOf(phaseEndsAt);
  const ended = end !== undefined && end <= now;
  return h(
    'li',
    {},
    h('a', { href: `chambers/${chamberId}`, class: 'name' }, foreign(name)),
    h('span', { class: 'number' }, `#${chamberId}`),
    h('span', { class: `phase ${phase.toLowerCase()}` }, progress(step), PHASE_NAMES[phase]),
    h('span', { class: 'members' }, plural(memberCount, 'member')),
    h(
      'span',
      { class: 'until' },
      end === undefined && 'root on the chain',
      // Shown until the service reports the next phase.
      ended && (phase === 'ALLOCATE_REVEAL' ? 'root awaited' : 'ending …'),
      end !== undefined && !ended && (isLive ? [timeLeft(end, now), ' left'] : ['until ', time(end, now)]),
    ),
  );
}

/** Draws six dots, filled up to the phase. */
function progress(step: number): Element {
  const dots = PHASES.map((_, index) =>
    h('circle', { cx: 5 + index * 9, cy: 5, r: index === step ? 4 : 2.5, class: index <= step ? 'done' : 'todo' }),
  );
  return h('svg', { viewBox: '0 0 55 10', width: 55, height: 10, 'aria-hidden': 'true' }, ...dots);
}
