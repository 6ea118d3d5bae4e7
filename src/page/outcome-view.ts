// Shows the outcome at the top of a settled chamber's page. The bars show the backers of each idea in the agents' colours.
import { type OutcomeIdea, type OutcomeView, outcomeOf, outcomeText } from '../../projections/outcome.ts';
import { type Child, type Element, foreign, h } from '../html/element.ts';
import { BPS_TOTAL, instantOf } from '../vocabulary/values.ts';
import type { ChamberModel } from './chamber-model.ts';
import {
  agent,
  bar,
  COLOURS,
  empty,
  facts,
  folded,
  hash,
  ideaName,
  more,
  plural,
  type Segment,
  shownRows,
  ticker,
  time,
} from './format.ts';
import { outcomeCsv } from './outcome-csv.ts';

/** Returns undefined until the chamber is settled. */
export function outcomeIn({ state, now }: ChamberModel): OutcomeView | undefined {
  const outcome = outcomeOf(state, now);
  return 'view' in outcome ? outcome.view : undefined;
}

export function outcomeSection(model: ChamberModel, outcome: OutcomeView): Element {
  const { chamberId, members, committed, revealed, endedAt, lastEventId } = outcome;
  const shares = `${revealed} of ${plural(members.length, 'member')} revealed an allocation${
    revealed < committed ? `, ${committed - revealed} committed to one and did not` : ''
  }.`;
  const summary = `${members.length === 0 ? 'Nobody joined.' : shares} Settled by event ${lastEventId}, on the chain since `;
  return h(
    'section',
    { class: 'outcome', 'aria-labelledby': 'outcome' },
    h('h2', { id: 'outcome' }, 'Outcome ', h('small', {}, ...downloads(model, outcome))),
    ...ideas(model, outcome),
    facts(summary, time(instantOf(endedAt), model.now), '.'),
    more(outcome.ideas.length - shownRows(model, outcome.ideas).length, 'idea', `${chamberId}/outcome`),
  );
}

function downloads({ live }: ChamberModel, outcome: OutcomeView): readonly Child[] {
  const { chamberId } = outcome;
  const name = `chamber-${chamberId}-outcome`;
  // A file may come from another service.
  const json = live?.file === undefined ? `${chamberId}/outcome` : dataUrl('application/json', outcomeText(outcome));
  const csv = dataUrl('text/csv', outcomeCsv(outcome));
  return [
    h('a', { href: json, download: `${name}.json` }, 'JSON'),
    // Limits only the service's page; the browser builds a CSV of any size.
    (live !== undefined || csv.length <= CSV_CHARS_MAX) && [
      ' · ',
      h('a', { href: csv, download: `${name}.csv` }, 'CSV'),
    ],
  ];
}

const CSV_CHARS_MAX = 65_536;

function dataUrl(type: string, text: string): string {
  return `data:${type};charset=utf-8,${encodeURIComponent(text)}`;
}

function ideas(model: ChamberModel, outcome: OutcomeView): readonly Child[] {
  if (outcome.ideas.length === 0) return [empty('No idea was proposed.')];
  const whole = BPS_TOTAL * Math.max(1, outcome.revealed);
  const segments = segmentsOf(model, outcome);
  const row = (idea: OutcomeIdea) => {
    const by = h('span', { class: 'facts' }, 'by ', agent(idea.proposer, model));
    return h(
      'tr',
      { class: idea.graduated && 'graduate' },
      h('th', { scope: 'row' }, ticker(idea.ticker), ' ', ideaName(idea.name, idea.withdrawn), by),
      ...share(idea.totalBps, whole, segments(idea)),
      h('td', { class: 'backers' }, `${plural(idea.backers, 'backer')}, ${model.state.minBackersForGraduation} needed`),
      h('td', { class: 'became' }, ...resultOf(model, idea)),
    );
  };
  const list = (listed: readonly OutcomeIdea[]) => table(listed.map(row));
  const byShare = shownRows(model, outcome.ideas).toSorted((a, b) => b.totalBps - a.totalBps);
  const { abstainedBps } = outcome;
  const shareAbstained = share(abstainedBps, whole, [{ size: abstainedBps, class: 'cnone' }]);
  const abstainedHead = h('th', { scope: 'row' }, 'Abstained');
  const abstained = h('tr', { class: 'abstained' }, abstainedHead, ...shareAbstained, h('td', {}), h('td', {}));
  const [first, ...rest] = folded(byShare, { noun: 'idea', isKept: ({ graduated }) => graduated, list });
  const label = 'Ideas by share of the allocations';
  const shares = withRow(first as Element, abstained);
  return [h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, shares), ...rest];
}

function table(rows: readonly Element[]): Element {
  const titles = ['Idea', 'Share', 'Backers', 'Result'];
  const head = titles.map((title) => h('th', { scope: 'col', colspan: title === 'Share' && 2 }, title));
  return h('table', { class: 'shares' }, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows));
}

/** Returns the table with an additional last row. */
function withRow(whole: Element, row: Element): Element {
  const [head, body] = whole.children as readonly [Element, Element];
  return { ...whole, children: [head, { ...body, children: [...body.children, row] }] };
}

/** `whole` is the total that the members that revealed could allocate. */
function share(bps: number, whole: number, segments: readonly Segment[]): readonly Element[] {
  const words = `${((100 * bps) / whole).toFixed(1)} %`;
  return [h('td', { class: 'picture' }, bar(whole, segments)), h('td', { class: 'percent' }, words)];
}

/** With more segments in total, the service's page does not divide the bars. */
const SEGMENTS_MAX = 4_096;

/** Returns a function from an idea to its allocations, in turn order and in the colours of the members. */
function segmentsOf({ state: { members, reveals }, live }: ChamberModel, { ideas }: OutcomeView) {
  if (live === undefined && reveals.size * ideas.length > SEGMENTS_MAX) {
    return ({ totalBps }: OutcomeIdea): readonly Segment[] => [{ size: totalBps, class: 'cnone' }];
  }
  const byIdea = new Map<string, Segment[]>(ideas.map(({ ideaId }) => [ideaId, []]));
  for (const [order, did] of members.entries()) {
    for (const { ideaId, bps } of reveals.get(did)?.allocations ?? []) {
      if (bps > 0) byIdea.get(ideaId)?.push({ size: bps, class: `c${order % COLOURS}` });
    }
  }
  return ({ ideaId }: OutcomeIdea): readonly Segment[] => byIdea.get(ideaId) ?? [];
}

function resultOf(model: ChamberModel, idea: OutcomeIdea): readonly Child[] {
  const { tokenAddress, failure, graduated, withdrawn } = idea;
  if (withdrawn) return [h('span', { class: 'facts' }, 'withdrawn')];
  if (!graduated) return [h('span', { class: 'facts' }, 'did not graduate')];
  if (tokenAddress === null) return ['no token: ', foreign(failure ?? '')];
  return ['token ', tokenLink(model, idea.ticker, tokenAddress)];
}

export function tokenLink({ state, live }: ChamberModel, symbol: string, tokenAddress: string): Element {
  const address = hash(tokenAddress);
  const href = `../ideas/${encodeURIComponent(symbol)}?chamberId=${state.chamberId}`;
  // A file may come from another service.
  return live?.file === undefined ? h('a', { href }, address) : address;
}
