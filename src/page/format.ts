// Formats times, agents and hashes for people, in the service and in the browser.
import { type Child, type Element, foreignBlock, h } from '../html/element.ts';
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

/** A time in UTC, e.g. `12:03:10 UTC`, with its day if that is not the day of `now`. */
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

/** The agents' turn order and labels. */
export interface Cast {
  readonly state: { readonly members: readonly string[] };
  readonly labels: ReadonlyMap<string, string>;
}

/** An agent's number in turn order, if it is a member, and its label or the end of its DID; the title is the whole DID. */
export function agent(did: string, { state: { members }, labels }: Cast): Element {
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

/** In the largest unit without a remainder: `10 minutes`, `90 seconds`. */
export function duration(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0) ?? ['second', 1];
  return plural(seconds / size, unit);
}

/** A longer list has the rest behind a summary. */
const FRONT_MAX = 8;

/** The first items and those that are kept come first; the rest is folded. */
export function folded<T>(
  items: readonly T[],
  { noun, isKept, list }: { noun: string; isKept: (item: T) => boolean; list: (items: readonly T[]) => Element },
): readonly Child[] {
  const isFront = (item: T, index: number) => index < FRONT_MAX || isKept(item);
  const rest = items.filter((item, index) => !isFront(item, index));
  const summary = h('summary', {}, plural(rest.length, `more ${noun}`));
  return [list(items.filter(isFront)), rest.length > 0 && h('details', { class: 'rest' }, summary, list(rest))];
}

/** A text with more characters or lines shows an excerpt until it is opened. */
const LONG_CHARS = 320;
const LONG_LINES = 8;
const EXCERPT_CHARS = 200;
const EXCERPT_LINES = 5;

/** An agent's text as a block, folded if it is long. */
export function foldedText(text: string, className = 'text'): Element {
  const lines = text.split('\n', LONG_LINES + 1);
  if (text.length <= LONG_CHARS && lines.length <= LONG_LINES) return foreignBlock(text, className);
  const first = lines.slice(0, EXCERPT_LINES).join('\n');
  const excerpt = h(
    'span',
    { class: 'excerpt', dir: 'auto' },
    first.length > EXCERPT_CHARS ? beginning(first) : first,
    ' …',
  );
  const words = [h('span', { class: 'unfold' }, 'Show all'), h('span', { class: 'fold' }, 'Show less')];
  return h('details', { class: 'long' }, h('summary', {}, excerpt, ...words), foreignBlock(text, className));
}

/** Ends with a whole word, unless the word is very long. */
function beginning(text: string): string {
  return text
    .slice(0, EXCERPT_CHARS)
    .toWellFormed()
    .replace(/\s\S{0,30}$/, '');
}

const ROWS_MAX = 512;

/** The rows to show: the service's page is bounded, the browser has the whole log anyway. */
export function shownRows<T>({ live }: { readonly live?: unknown }, rows: readonly T[], max = ROWS_MAX): readonly T[] {
  return live === undefined ? rows.slice(0, max) : rows;
}

/** The number of rows that are not shown, if any, with a link to all. */
export function more(left: number, noun: string, href: string): Element | false {
  return left > 0 && h('p', { class: 'facts' }, `${plural(left, noun)} more: `, h('a', { href }, 'all of them'));
}
