// Shows the allocations: an envelope for each member before the reveals, then a matrix of agents and ideas, and the tally as bars.
import { tallies } from '../../projections/graduation.ts';
import type { Idea } from '../../projections/ideas.ts';
import { isClosed } from '../../projections/phase.ts';
import { type Child, type Element, h } from '../html/element.ts';
import { BPS_TOTAL } from '../vocabulary/values.ts';
import type { ChamberModel } from './chamber-model.ts';
import { agent, bar, facts, folded, more, percent, plural, section, shownRows, ticker } from './format.ts';

/** Omits the tally if the page has an outcome, which includes it. */
export function allocationSection(model: ChamberModel, { hasOutcome = false } = {}): Element | false {
  const { state } = model;
  if (state.commitments.size === 0) return false;
  const isOpen = state.reveals.size > 0;
  return section(
    'Allocations',
    isOpen && !hasOutcome && tally(model),
    isOpen ? matrix(model) : envelopes(model),
    isOpen && facts(`An idea graduates with ${plural(state.minBackersForGraduation, 'backer')}.`),
  );
}

function envelopes(model: ChamberModel): readonly Child[] {
  const { members } = model.state;
  const shown = shownRows(model, members);
  const rows = shown.map((did) => h('li', {}, agent(did, model), envelope(model, did)));
  return [h('ul', { class: 'envelopes' }, ...rows), rest(model, members.length - shown.length, 'member')];
}

function rest({ state }: ChamberModel, left: number, noun: string): Child {
  return more(left, noun, `${state.chamberId}/allocations`);
}

/** Draws a closed envelope for an allocation that is not revealed, or an outline if the member has not committed. */
function envelope({ state, now }: ChamberModel, did: string): Element {
  const kind = state.commitments.has(did) ? 'committed' : 'empty';
  const isCommitOver = now >= state.ends.allocateCommitDeadline;
  const words = {
    empty: isCommitOver ? 'not committed' : 'nothing yet',
    committed: isClosed(state, now) ? 'not revealed' : 'committed',
  }[kind];
  const shape =
    kind === 'empty'
      ? [h('rect', { x: 1, y: 1, width: 20, height: 14, rx: 2, class: 'outline' })]
      : [
          h('rect', { x: 1, y: 1, width: 20, height: 14, rx: 2, class: 'paper' }),
          h('path', { d: 'M1.5 2.5 11 9.5l9.5-7', class: 'flap' }),
        ];
  const picture = h('svg', { viewBox: '0 0 22 16', width: 22, height: 16, 'aria-hidden': 'true' }, ...shape);
  return h('span', { class: `envelope ${kind}` }, picture, ' ', words);
}

/** Scales the bars to the longest one. */
function tally(model: ChamberModel): readonly Child[] {
  const { state } = model;
  const byIdea = tallies(state);
  const shown = shownRows(model, state.ideas);
  const maxBps = Math.max(1, ...[...byIdea.values()].map(({ totalBps }) => totalBps));
  const tallyOf = ({ ideaId }: Idea) => byIdea.get(ideaId) ?? { backers: 0, totalBps: 0 };
  const isGraduate = (idea: Idea) => tallyOf(idea).backers >= state.minBackersForGraduation;
  const row = (idea: Idea) => {
    const { backers, totalBps } = tallyOf(idea);
    const picture = bar(maxBps, [{ size: totalBps, rx: 1, class: isGraduate(idea) ? 'graduate' : 'bar' }]);
    const share = percent(totalBps / Math.max(1, state.reveals.size));
    const words = `${share} · ${plural(backers, 'backer')}${isGraduate(idea) ? ' ✓' : ''}`;
    return h('li', {}, ticker(idea.ticker), picture, h('span', {}, words));
  };
  const list = (ideas: readonly Idea[]) => h('ul', { class: 'tally', 'aria-label': 'Tally' }, ...ideas.map(row));
  return [
    ...folded(shown, { noun: 'idea', isKept: isGraduate, list }),
    rest(model, state.ideas.length - shown.length, 'idea'),
  ];
}

/** The maximum number of matrix cells in the service's page. */
const CELLS_MAX = 8_192;

function matrix(model: ChamberModel): readonly Child[] {
  const { members, reveals } = model.state;
  const ideas = shownRows(model, model.state.ideas);
  const shown = shownRows(model, members, Math.floor(CELLS_MAX / Math.max(1, ideas.length)));
  const head = h('tr', {}, h('td', {}), ...ideas.map((idea) => h('th', { scope: 'col' }, ticker(idea.ticker))));
  const rows = shown.map((did) => {
    const reveal = reveals.get(did);
    const member = h('th', { scope: 'row' }, agent(did, model));
    if (reveal === undefined) {
      const attributes = { colspan: Math.max(1, ideas.length), class: 'unrevealed' };
      return h('tr', {}, member, h('td', attributes, envelope(model, did)));
    }
    const byIdea = new Map(reveal.allocations.map(({ ideaId, bps }) => [ideaId, bps]));
    const cells = ideas.map(({ ideaId }) => {
      const bps = byIdea.get(ideaId) ?? 0;
      if (bps === 0) return h('td', { class: 'none' }, '–');
      // style.css defines five shades.
      const shade = Math.min(5, 1 + Math.floor((bps * 5) / BPS_TOTAL));
      return h('td', { class: `shade s${shade}` }, percent(bps));
    });
    return h('tr', {}, member, ...cells);
  });
  const label = 'Allocations by agent and idea';
  const table = h('table', { class: 'matrix', 'aria-label': label }, h('thead', {}, head), h('tbody', {}, ...rows));
  return [
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, table),
    rest(model, members.length - shown.length, 'member'),
  ];
}
