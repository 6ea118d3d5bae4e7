// The browser's additions to a chamber's page: the replay, the events' marks, and the results of the checks.
import type { CheckName, CheckResult } from '../audit/report/findings.ts';
import { type Attributes, type Element, foreign, h } from '../html/element.ts';
import type { Hex } from '../vocabulary/values.ts';
import { facts, plural } from './format.ts';

export type Mark = 'waiting' | 'verified' | 'broken';

export interface LiveModel {
  /** The number of events. */
  readonly total: number;
  /** The number of events that the page shows. */
  readonly shown: number;
  readonly isPlaying: boolean;
  /** The replay shows twice this many events per second. */
  readonly speed: number;
  readonly isConnected: boolean;
  /** Whether no more events will come. */
  readonly isSettled: boolean;
  /** The name of the file with the lines; undefined if they are from a service. */
  readonly file: string | undefined;
  /** The event in the page's URL. */
  readonly linked: number | undefined;
  readonly chain: NamedChain | undefined;
  /** Verifier keys of the witnesses that the reader names. */
  readonly witnesses: readonly string[];
  readonly audit: Audit;
  readonly markOf: (eventId: number) => Mark;
  /** Whether this chunk of the transcript is in the document. */
  readonly isDrawn: (place: number) => boolean;
  /** Returns the last element built for this place. Builds it again if the version differs, now or in a later frame. */
  readonly memo: (place: number, version: string, make: () => Element) => Element | undefined;
}

/** The chain that the reader names, to compare the lines with. */
export interface NamedChain {
  readonly rpc: string;
  readonly registry: string;
}

/** The root of the first `size` moves, in the page's URL. */
export interface NamedRoot {
  readonly size: number;
  readonly root: string;
}

/** The browser's checks of the published log, each with the claim that it verifies. */
export const PUBLISHED_CHECKS = {
  signed: 'the checkpoint is signed by the key of the log',
  included: 'the lines are under the checkpoint',
  extends: 'the log extends the checkpoint that this browser saw before',
  cosigned: 'the witnesses that you name have cosigned the checkpoint',
} as const;
export type PublishedCheckName = keyof typeof PUBLISHED_CHECKS;

/** A check of the auditor, of the root in the page's URL, or of the published log. */
export interface ShownCheck extends Omit<CheckResult, 'name' | 'findingsLeftOut'> {
  readonly name: CheckName | 'link' | PublishedCheckName;
}

export interface Audit {
  /** The number of checked lines. */
  readonly checked: number;
  /** The number of moves among them. */
  readonly size: number;
  readonly root: Hex | null;
  readonly results: readonly ShownCheck[];
  /** The newest checkpoint of the log, to be saved for the next visit. */
  readonly note?: string | undefined;
  /** Why the checks can't run. */
  readonly failure: string | null;
}

export const SPEEDS = [1, 4, 16];

/** Without a script, an empty bar reserves the space. */
export function replayBar(live: LiveModel | undefined): Element {
  if (live === undefined) return h('div', { class: 'replay' });
  const { total, shown, isPlaying, isConnected, isSettled, speed, file } = live;
  const isLast = shown === total;
  const isOpen = file === undefined && !isSettled;
  const last = isOpen ? (isConnected ? 'Live' : 'Reconnecting…') : 'End';
  const state = isOpen && isLast && isConnected ? 'live on' : 'live';
  const play = { type: 'button', 'data-act': 'play', 'aria-label': isPlaying ? 'Pause' : 'Play' };
  const playButton = h('button', play, isPlaying ? '❚❚' : '▶');
  const speeds = SPEEDS.map((each) => h('option', { value: each, selected: each === speed }, `${each}×`));
  const texts = { 'aria-label': 'Event', 'aria-valuetext': `event ${shown} of ${total}` };
  return h(
    'div',
    { class: 'replay', role: 'group', 'aria-label': 'Replay' },
    playButton,
    h('select', { name: 'speed', 'aria-label': 'Speed' }, ...speeds),
    h('input', { type: 'range', name: 'shown', min: 1, max: total, value: shown, ...texts }),
    h('output', {}, `${shown} / ${total}`),
    h('button', { type: 'button', 'data-act': 'live', class: state, 'aria-pressed': String(isLast) }, last),
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
  if (live === undefined) {
    const text =
      'With JavaScript, your browser checks every line of the log itself. Without it, the command line does:';
    const command = h('p', {}, h('code', { class: 'whole' }, `chambers audit URL --chamber=${chamberId}`));
    return h('section', { class: 'verify' }, h('h2', {}, 'Verify it yourself'), h('p', {}, text), command);
  }
  const { audit, total, file } = live;
  const broken = brokenChecks(audit);
  const isDone = audit.checked === total && broken.length === 0 && audit.failure === null;
  return h(
    'section',
    { class: broken.length > 0 ? 'verify bad' : isDone ? 'verify good' : 'verify' },
    h('h2', { id: 'verify' }, broken.length > 0 ? 'Not verified' : 'Verified here'),
    file !== undefined && h('p', {}, foreign(file), ', which does not leave this browser.'),
    h('p', { role: 'status' }, audit.failure ?? verdict(live, broken)),
    broken.length > 0 && h('div', { role: 'alert' }, h('ul', { class: 'findings' }, ...broken.map(finding))),
    // The badges are above the parts that grow, so that they do not move.
    proofBadges(audit),
    file === undefined && chainForm(live),
    file === undefined && witnessForm(live),
    h(
      'details',
      {},
      h('summary', {}, 'What is checked'),
      h('ul', { class: 'checks' }, ...audit.results.map(check)),
      facts(LIMITS),
    ),
    fileField(),
    file === undefined && stateLink(audit),
  );
}

/** The badges, with their checks. `root` covers the service's root, and the chain's root if the reader names a chain. */
const BADGES: Readonly<Record<string, readonly ShownCheck['name'][]>> = {
  root: ['root', 'preview', 'contract'],
  checkpoint: ['signed'],
  inclusion: ['included'],
  consistency: ['extends'],
  witnesses: ['cosigned'],
};

const DECISIVE = ['broken', 'verified'] as const;

/** The badges have the same width for each verdict, so that nothing below shifts. */
function proofBadges({ results }: Audit): Element {
  const badges = Object.entries(BADGES).map(([label, names]) => {
    const checks = results.filter(({ name }) => names.includes(name));
    const verdict = DECISIVE.find((each) => checks.some((result) => result.verdict === each)) ?? 'not evaluated';
    const decided = checks.filter((result) => result.verdict === verdict);
    const reasons = decided.map(({ title, note }) => (note === null ? title : `${title} (${note})`));
    const [sign] = MARKS[SIGNS[verdict]];
    const picture = h('span', { role: 'img', 'aria-label': verdict }, sign);
    const words = [verdict, ...reasons].join(': ');
    return h('li', { class: `proof ${SIGNS[verdict]}`, title: words }, picture, ` ${label}`);
  });
  return h('ul', { class: 'proofs', 'aria-label': 'Proofs' }, ...badges);
}

function brokenChecks({ results }: Audit): readonly ShownCheck[] {
  return results.filter(({ verdict }) => verdict === 'broken');
}

/** Shown near the top, because the findings can be far below. Always in the document, so that nothing shifts. */
export function alarm(live: LiveModel | undefined): Element {
  const isBroken = live !== undefined && brokenChecks(live.audit).length > 0;
  const link = h('a', { href: '#verify' }, 'See what it found');
  return h('p', { class: 'alarm' }, isBroken && ['✗ Your browser found this log broken. ', link]);
}

const LIMITS =
  'Your browser runs the auditor of this project on the lines as they arrive. It trusts the code that this service sent; the command line does not.';

function verdict({ audit, total }: LiveModel, broken: readonly ShownCheck[]): string {
  if (broken.length > 0) return `${plural(broken.length, 'check')} found this log broken.`;
  const checked = `${audit.checked} of ${plural(total, 'event')} checked by your browser`;
  return audit.checked === total ? `${checked}: nothing is broken.` : `${checked} …`;
}

const FINDINGS_SHOWN_MAX = 5;

function finding({ title, findings, counts }: ShownCheck): Element {
  const shown = findings.slice(0, FINDINGS_SHOWN_MAX);
  const items = shown.map(({ eventIds, sentence }) => {
    const links = eventIds.slice(0, FINDINGS_SHOWN_MAX).map((id) => [' ', h('a', { href: `#e${id}` }, `#${id}`)]);
    return h('li', {}, foreign(sentence), links);
  });
  const rest = counts.broken - shown.length;
  const more = rest > 0 && h('li', {}, `and ${rest} more`);
  return h('li', {}, h('b', {}, `Broken: ${title}`), h('ul', {}, ...items, more));
}

const SIGNS = { verified: 'verified', broken: 'broken', undecided: 'waiting', 'not evaluated': 'waiting' } as const;

function check({ title, verdict, counts, note }: ShownCheck): Element {
  const count = counts.verified + counts.broken;
  const numbers = count > 0 ? ` (${count})` : '';
  const reason = note !== null && h('small', {}, ' ', foreign(note));
  return h('li', {}, eventMark(SIGNS[verdict]), ' ', title, numbers, reason);
}

/** Submitting the form reloads the page with a policy that allows the RPC's origin. */
function chainForm({ chain, audit }: LiveModel): Element {
  const results = audit.results.filter(({ name }) => name === 'contract' || name === 'claims' || name === 'balances');
  const rpc = field('RPC', { name: 'rpc', type: 'url', value: chain?.rpc, placeholder: 'https://' });
  const address = { value: chain?.registry, pattern: '0x[0-9a-fA-F]{40}', placeholder: '0x' };
  return h(
    'details',
    { class: 'chain', open: chain !== undefined },
    h('summary', {}, 'Ask the chain too'),
    chain && h('ul', { class: 'checks' }, ...results.map(check)),
    h('form', {}, rpc, field('Registry', { name: 'registry', ...address }), h('button', {}, 'Ask')),
    facts('Your browser asks the RPC itself. Take both from a source that you trust, not from this page.'),
  );
}

/** The reader must get the keys elsewhere, because the service could invent them. */
function witnessForm({ witnesses }: LiveModel): Element {
  const placeholder = 'witness.example.org/w1+a1b2c3d4+BN…';
  const keys = field('Keys', { name: 'witnesses', value: witnesses.join(' '), placeholder });
  return h(
    'details',
    { class: 'witnesses', open: witnesses.length > 0 },
    h('summary', {}, 'Name witnesses'),
    h('form', {}, keys, h('button', {}, 'Check')),
    facts('Verifier keys, separated by spaces. Take them from a source that you trust, not from this page.'),
  );
}

function field(title: string, attributes: Attributes): Element {
  return h('label', {}, title, h('input', { required: true, autocomplete: 'off', ...attributes }));
}

function stateLink({ size, root }: Audit): Element | false {
  if (root === null) return false;
  const [moves, were] = size === 1 ? ['this move', 'it was'] : [`these ${size} moves`, 'they were'];
  const link = h('a', { href: `?size=${size}&root=${root}` }, `Link to ${moves}`);
  return facts(link, `: it shows a later visitor whether ${were} changed.`);
}

/** A file can also be dropped anywhere on the page. */
export function fileField(): Element {
  const input = h('input', { type: 'file', name: 'lines', accept: '.ndjson,.jsonl,.txt' });
  return h('label', { class: 'file facts' }, 'Check an exported file, offline: ', input);
}
