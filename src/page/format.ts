// Formats times, agents and hashes for people, in the service and in the browser.
import { type Child, type Element, foreign, foreignBlock, h } from '../html/element.ts';
import { shortAgent } from '../vocabulary/short.ts';
import { type Millis, type Phase, toTimestamp } from '../vocabulary/values.ts';

export const PHASE_NAMES: Readonly<Record<Phase, string>> = {
  LOBBY: 'Lobby',
  PROPOSAL: 'Proposal',
  DEBATE: 'Debate',
  ALLOCATE_COMMIT: 'Commit',
  ALLOCATE_REVEAL: 'Reveal',
  COMMITTED: 'Committed',
};

/** Formats a time in UTC, e.g. `12:03:10 UTC`, with its date if that is not the date of `now`. */
export function time(at: Millis, now: Millis): Element {
  const stamp = toTimestamp(at);
  const [day = '', clock = ''] = stamp.split('T');
  const isToday = day === toTimestamp(now).slice(0, 10);
  return h('time', { datetime: stamp }, isToday ? '' : `${day} `, `${clock.slice(0, 8)} UTC`);
}

export { timeLeft } from '../vocabulary/short.ts';

const HEAD_CHARS = 10;
const TAIL_CHARS = 4;

function shortened(text: string): string {
  return text.length > HEAD_CHARS + TAIL_CHARS + 1 ? `${text.slice(0, HEAD_CHARS)}…${text.slice(-TAIL_CHARS)}` : text;
}

export const COLOURS = 8;

/** The turn order and labels of agents. */
export interface AgentNames {
  readonly state: { readonly members: readonly string[] };
  readonly labels: ReadonlyMap<string, string>;
}

/** Shows a member's number in turn order, and an agent's label or the end of its DID. The title is the whole DID. */
export function agent(did: string, { state: { members }, labels }: AgentNames): Element {
  const order = members.indexOf(did);
  const colour = order === -1 ? 'none' : String(order % COLOURS);
  const label = labels.get(did);
  return h(
    'span',
    { class: 'agent', title: did },
    h('b', { class: `dot c${colour}`, 'aria-hidden': 'true' }, order === -1 ? '·' : order + 1),
    label === undefined ? shortDid(did) : h('bdi', { class: 'label' }, label),
  );
}

export function shortDid(did: string): Element {
  return h('bdi', { class: 'did' }, shortAgent(did));
}

export function hash(text: string): Element {
  return h('code', { class: 'hash', title: text }, shortened(text));
}

export function ticker(text: string): Element {
  return h('code', { class: 'ticker' }, text);
}

export function ideaName(name: string, isWithdrawn: boolean): Element {
  return isWithdrawn ? h('s', {}, foreign(name)) : foreign(name);
}

export function facts(...children: readonly Child[]): Element {
  return h('p', { class: 'facts' }, ...children);
}

export function empty(text: string): Element {
  return h('p', { class: 'empty' }, text);
}

export function section(title: Child, ...children: readonly Child[]): Element {
  return h('section', {}, h('h2', {}, title), ...children);
}

const BAR_WIDTH = 100;

export interface Segment {
  readonly size: number;
  readonly class: string;
  /** The radius of the corners. */
  readonly rx?: number;
}

/** Draws the segments next to each other on a bar of the size `whole`. */
export function bar(whole: number, segments: readonly Segment[]): Element {
  let x = 0;
  const rects = segments.map(({ size, ...attributes }) => {
    const width = (BAR_WIDTH * size) / whole;
    const rect = h('rect', { x, y: 0, width, height: 8, ...attributes });
    x += width;
    return rect;
  });
  const box = { viewBox: `0 0 ${BAR_WIDTH} 8`, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  return h('svg', box, ...rects);
}

export function percent(bps: number): string {
  const share = bps / 100;
  return `${share < 1 ? share : Math.round(share)} %`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** Formats a duration in the largest unit without a remainder, e.g. `10 minutes` or `90 seconds`. */
export function duration(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0) ?? ['second', 1];
  return plural(seconds / size, unit);
}

/** Further items of a list are folded. */
const UNFOLDED_MAX = 8;

/** Shows the first items and those that `isKept` selects, and folds the rest. */
export function folded<T>(
  items: readonly T[],
  { noun, isKept, list }: { noun: string; isKept: (item: T) => boolean; list: (items: readonly T[]) => Element },
): readonly Child[] {
  const isUnfolded = (item: T, index: number) => index < UNFOLDED_MAX || isKept(item);
  const rest = items.filter((item, index) => !isUnfolded(item, index));
  const summary = h('summary', {}, plural(rest.length, `more ${noun}`));
  return [list(items.filter(isUnfolded)), rest.length > 0 && h('details', { class: 'rest' }, summary, list(rest))];
}

/** A text with more characters or lines is folded: it shows an excerpt until the reader opens it. */
const LONG_CHARS = 320;
const LONG_LINES = 8;
const EXCERPT_CHARS = 200;
const EXCERPT_LINES = 5;

/** Returns an agent's text as a block, folded if it is long. */
export function foldedText(text: string, className = 'text'): Element {
  const lines = text.split('\n', LONG_LINES + 1);
  if (text.length <= LONG_CHARS && lines.length <= LONG_LINES) return foreignBlock(text, className);
  const first = lines.slice(0, EXCERPT_LINES).join('\n');
  const shown = first.length > EXCERPT_CHARS ? cutAtWord(first) : first;
  const excerpt = h('span', { class: 'excerpt', dir: 'auto' }, shown, ' …');
  const words = [h('span', { class: 'unfold' }, 'Show all'), h('span', { class: 'fold' }, 'Show less')];
  return h('details', { class: 'long' }, h('summary', {}, excerpt, ...words), foreignBlock(text, className));
}

/** Ends the excerpt with a whole word, unless the word is very long. */
function cutAtWord(text: string): string {
  const cut = text.slice(0, EXCERPT_CHARS).toWellFormed();
  return cut.replace(/\s\S{0,30}$/, '');
}

const ROWS_MAX = 512;

/** Returns the rows to show: at most `max` in the service's page, all in the browser, which has the whole log anyway. */
export function shownRows<T>({ live }: { readonly live?: unknown }, rows: readonly T[], max = ROWS_MAX): readonly T[] {
  return live === undefined ? rows.slice(0, max) : rows;
}

/** Returns the number of rows that are not shown, if any, with a link to all rows. */
export function more(left: number, noun: string, href: string): Element | false {
  return left > 0 && h('p', { class: 'facts' }, `${plural(left, noun)} more: `, h('a', { href }, 'all of them'));
}
