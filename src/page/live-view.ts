// What the browser adds to a chamber's page: the replay, each event's mark, and the outcome of the checks.
import type { CheckResult } from '../audit/findings.ts';
import { type Element, foreign, h } from './element.ts';
import { plural } from './format.ts';

export type Mark = 'waiting' | 'verified' | 'broken';

export interface LiveModel {
  /** How many events there are, and how many of them the page shows. */
  readonly total: number;
  readonly shown: number;
  readonly isPlaying: boolean;
  readonly isConnected: boolean;
  /** The event that the address names. */
  readonly linked: number | undefined;
  readonly audit: Audit;
  readonly markOf: (eventId: number) => Mark;
  /** The element made last for this key. */
  readonly memo: (key: string, make: () => Element) => Element;
}

/** The state of the checks in this browser. */
export interface Audit {
  /** Lines that went through the checks. */
  readonly checked: number;
  readonly results: readonly CheckResult[];
  /** Why the checks can't run. */
  readonly failure: string | null;
}

export function replayBar({ total, shown, isPlaying, isConnected }: LiveModel): Element {
  const isLive = shown === total;
  return h(
    'div',
    { class: 'replay', role: 'group', 'aria-label': 'Replay' },
    h(
      'button',
      { type: 'button', 'data-act': 'play', 'aria-label': isPlaying ? 'Pause' : 'Play' },
      isPlaying ? '❚❚' : '▶',
    ),
    h('input', {
      type: 'range',
      min: 1,
      max: total,
      value: shown,
      'aria-label': 'Event',
      'aria-valuetext': `event ${shown} of ${total}`,
    }),
    h('output', {}, `${shown} / ${total}`),
    h(
      'button',
      {
        type: 'button',
        'data-act': 'live',
        class: isLive && isConnected ? 'live on' : 'live',
        'aria-pressed': String(isLive),
      },
      isConnected ? 'Live' : 'Reconnecting…',
    ),
  );
}

const MARKS: Readonly<Record<Mark, readonly [sign: string, words: string]>> = {
  waiting: ['○', 'not checked yet'],
  verified: ['✓', 'verified'],
  broken: ['✗', 'broken'],
};

export function eventMark(mark: Mark): Element {
  const [sign, words] = MARKS[mark];
  return h('span', { class: `mark ${mark}`, role: 'img', 'aria-label': words, title: words }, sign);
}

export function verifySection(chamberId: number, live: LiveModel | undefined): Element {
  const heading = h('h2', {}, 'Verified here');
  const command = h('p', {}, h('code', { class: 'whole' }, `chambers audit URL --chamber=${chamberId}`));
  if (live === undefined) {
    const text =
      'With JavaScript, your browser checks every line of the log itself. Without it, the command line does:';
    return h('section', { class: 'verify' }, heading, h('p', {}, text), command);
  }
  const { audit, total } = live;
  const broken = audit.results.filter(({ verdict }) => verdict === 'broken');
  const isDone = audit.checked === total && broken.length === 0 && audit.failure === null;
  return h(
    'section',
    { class: broken.length > 0 ? 'verify bad' : isDone ? 'verify good' : 'verify' },
    heading,
    h('p', { role: 'status' }, audit.failure ?? verdict(live, broken)),
    broken.length > 0 && h('ul', { class: 'findings', role: 'alert' }, ...broken.map(finding)),
    h(
      'details',
      {},
      h('summary', {}, 'What is checked'),
      h('ul', { class: 'checks' }, ...audit.results.map(check)),
      h('p', { class: 'facts' }, LIMITS),
    ),
  );
}

const LIMITS =
  'Your browser runs the auditor of this project on the lines as they arrive. It trusts the code that this service sent; the command line does not. The chain itself is asked only by the command line, with --rpc.';

function verdict({ audit, total }: LiveModel, broken: readonly CheckResult[]): string {
  if (broken.length > 0) return `${plural(broken.length, 'check')} found this log broken.`;
  const checked = `${audit.checked} of ${plural(total, 'event')} checked by your browser`;
  return audit.checked === total ? `${checked}: nothing is broken.` : `${checked} …`;
}

const FINDINGS_SHOWN_MAX = 5;

function finding({ title, findings, counts }: CheckResult): Element {
  const shown = findings.slice(0, FINDINGS_SHOWN_MAX);
  const links = shown.map(({ eventIds, sentence }) =>
    h(
      'li',
      {},
      foreign(sentence),
      ...eventIds.slice(0, FINDINGS_SHOWN_MAX).map((id) => [' ', h('a', { href: `#e${id}` }, `#${id}`)]),
    ),
  );
  const rest = counts.broken - shown.length;
  return h(
    'li',
    {},
    h('b', {}, `Broken: ${title}`),
    h('ul', {}, ...links, rest > 0 && h('li', {}, `and ${rest} more`)),
  );
}

const SIGNS = { verified: 'verified', broken: 'broken', undecided: 'waiting', 'not evaluated': 'waiting' } as const;

function check({ title, verdict, counts, note }: CheckResult): Element {
  const count = counts.verified + counts.broken;
  const numbers = count > 0 ? ` (${count})` : '';
  return h(
    'li',
    {},
    eventMark(SIGNS[verdict]),
    ' ',
    title,
    numbers,
    note !== null && h('small', {}, ' ', foreign(note)),
  );
}
