// Renders a transcript as text for a model: one line per event, agents' texts on lines that begin with `> `, one line for consecutive
// passes, joins or commits, and a line for each expired turn.
import { SPEECH } from '../../projections/turn.ts';
import type { TranscriptTurn } from '../client/forum-client.ts';
import { instantOf } from '../vocabulary/values.ts';

export interface TurnRules {
  readonly memberCount: number;
  /** Infinity if turns have no limit. */
  readonly turnMillis: number;
  /** The times at which the phases with turns began. */
  readonly startOf: Readonly<Partial<Record<TranscriptTurn['phase'], number>>>;
}

export interface Passage {
  /** Headings and expired turns, before the events. */
  readonly before: string;
  readonly events: readonly TranscriptTurn[];
}

/** `previous` is the preceding event, if known; turns may have expired after it. */
export function passagesOf(
  turns: readonly TranscriptTurn[],
  rules: TurnRules,
  previous?: TranscriptTurn,
): readonly Passage[] {
  const passages: Passage[] = [];
  let phase = previous?.phase;
  /** The time at which the current turn began, if known. */
  let since = previous !== undefined && isPass(previous) ? instantOf(previous.ts) : undefined;
  for (const turn of turns) {
    const isNewPhase = turn.phase !== phase;
    if (isNewPhase) since = rules.startOf[turn.phase];
    phase = turn.phase;
    const missed = missedBefore(turn, since, rules);
    if (since !== undefined && missed > 0) since += missed * rules.turnMillis;
    const last = passages.at(-1);
    if (last?.events[0]?.type === turn.type && turn.type in GROUPED_EVENTS && !isNewPhase && missed === 0) {
      passages[passages.length - 1] = { ...last, events: [...last.events, turn] };
    } else {
      const heading = isNewPhase ? `## ${turn.phase}\n` : '';
      passages.push({ before: heading + missedLines(turn, missed, rules), events: [turn] });
    }
    if (isPass(turn)) since = instantOf(turn.ts);
  }
  return passages;
}

export function textOf({ before, events }: Passage): string {
  const [first, last] = [events[0], events.at(-1)];
  if (first === undefined || last === undefined) return before;
  const done = GROUPED_EVENTS[first.type];
  if (done === undefined) return `${before}${first.eventId}. ${timeOf(first)} ${sentenceOf(first)}\n`;
  const ids = first === last ? `${first.eventId}` : `${first.eventId}–${last.eventId}`;
  return `${before}${ids}. ${timeOf(last)} ${events.map(({ agent }) => agent).join(', ')} ${done}\n`;
}

/** Returns the time of day in UTC. */
function timeOf({ ts }: TranscriptTurn): string {
  return ts.slice(11, 16);
}

function sentenceOf({ agent, text, words, isCut }: TranscriptTurn): string {
  return `${agent ?? 'service'} ${text}${isCut ? ' (cut)' : ''}${words.map(quoted).join('')}`;
}

/** Quotes every line of an agent's text, so that the agent can't forge a line of the service. */
function quoted(text: string): string {
  return `\n> ${text.replaceAll('\n', '\n> ')}`;
}

/** Events for which only the agent is shown, so that several can share a line. */
const GROUPED_EVENTS: Readonly<Partial<Record<TranscriptTurn['type'], string>>> = {
  'chamber.joined': 'joined',
  'chamber.passed': 'passed',
  'allocation.committed': 'committed',
};

function isPass({ type }: TranscriptTurn): boolean {
  return type === 'chamber.passed';
}

const IN_TURN: ReadonlySet<TranscriptTurn['type']> = new Set([...SPEECH, 'chamber.passed']);

/** Counts the turns that expired between `since` and the event, which belongs to the turn's holder. */
function missedBefore({ type, ts }: TranscriptTurn, since: number | undefined, { turnMillis }: TurnRules): number {
  if (since === undefined || !IN_TURN.has(type)) return 0;
  return Math.max(0, Math.floor((instantOf(ts) - since) / turnMillis));
}

/** Beyond this number, expired turns are only counted, because a chamber may have been idle for a long time. */
const MISSED_NAMED_MAX = 8;

function missedLines({ agent }: TranscriptTurn, missed: number, { memberCount }: TurnRules): string {
  if (missed > MISSED_NAMED_MAX) return `${missed} turns expired\n`;
  const order = Number(agent?.slice(1)) - 1;
  const holders = Array.from({ length: missed }, (_, at) => (order - missed + at) % memberCount);
  return holders.map((holder) => `A${((holder + memberCount) % memberCount) + 1}: the turn expired\n`).join('');
}
