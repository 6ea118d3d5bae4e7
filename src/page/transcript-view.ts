// Shows the events as a conversation, by phase and then by turn.
import type { ChamberState } from '../../projections/chamber.ts';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { phaseOf as phaseOfMove } from '../../projections/phase-ends.ts';
import { type Child, type Element, foreign, foreignBlock, h } from '../html/element.ts';
import { type ChamberEvent, fromLine, isMove } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import { instantOf, type JsonObject, type JsonValue, PHASES, type Phase } from '../vocabulary/values.ts';
import type { ChamberModel } from './chamber-model.ts';
import { agent, empty, facts, hash, PHASE_NAMES, percent, ticker, time } from './format.ts';
import { eventMark, type LiveModel } from './live-view.ts';

/** Limits the transcript in the service's page. */
const TRANSCRIPT_CHARS_MAX = 262_144;

/** Returns the events of the last lines whose texts fit on the service's page, at least one. Does not parse the other lines. */
export function eventsThatFit(lines: readonly string[]): readonly ChamberEvent[] {
  const events: ChamberEvent[] = [];
  let chars = 0;
  for (const line of lines.toReversed()) {
    // A chamber's stream has no other events.
    const event = fromLine(line) as ChamberEvent;
    if (event.type === 'chamber.debated') chars += debatedChars(event.payload);
    if (event.type === 'chamber.amended') chars += event.payload.description?.length ?? 0;
    if (chars > TRANSCRIPT_CHARS_MAX && events.length > 0) break;
    events.push(event);
  }
  return events.reverse();
}

function debatedChars({ comment, refinement }: Extract<ChamberEvent, { type: 'chamber.debated' }>['payload']): number {
  return comment.length + (refinement == null ? 0 : Math.min(indentedChars(refinement), INDENTED_CHARS_MAX));
}

/** How many events are drawn together. */
const CHUNK_EVENTS = 20;

interface TranscriptModel extends ChamberModel {
  /** The replies to each event, which the page lists beneath the event; other events have the key undefined. */
  readonly replies: ReadonlyMap<number | undefined, readonly ChamberEvent[]>;
}

export function transcriptSection(chamber: ChamberModel): Element {
  const { state, events, live } = chamber;
  const model = { ...chamber, replies: repliesIn(events) };
  const first = events[0]?.eventId ?? 1;
  const chunks: Element[] = [];
  for (let start = 0; start < events.length; start += CHUNK_EVENTS) {
    chunks.push(live === undefined ? chunk(model, start) : liveChunk(model, live, start));
  }
  const latest = h('a', { href: `#e${events.at(-1)?.eventId}` }, 'to the latest event');
  // On a phone the panels are below the transcript.
  const panels = h('span', { class: 'past' }, ' · ', h('a', { href: '#panels' }, 'to the checks'));
  const allLines = h('a', { href: `${state.chamberId}/events` }, 'All lines');
  return h(
    'section',
    { class: 'transcript' },
    h('h2', {}, 'Transcript', events.length > CHUNK_EVENTS && h('small', {}, ' ', latest, panels)),
    first > 1 && facts(`The last events, from number ${first}. `, allLines),
    ...chunks,
    ...emptyPhase(model),
  );
}

function repliesIn(events: readonly ChamberEvent[]): TranscriptModel['replies'] {
  return Map.groupBy(events, (event) => (event.type === 'chamber.debated' ? event.payload.replyTo : undefined));
}

/** Shows the current phase if it has no events. Expired turns are not events. */
function emptyPhase(model: ChamberModel): readonly Child[] {
  const { state, events, now } = model;
  const [last, phase] = [events.at(-1), phaseAt(state, now)];
  if (last === undefined || PHASES.indexOf(phaseOf(last, model)) >= PHASES.indexOf(phase)) return [];
  return [divider(phase), empty(isClosed(state, now) ? 'Nothing.' : 'Nothing yet.')];
}

function divider(phase: Phase): Element {
  return h('h3', { class: 'divider' }, PHASE_NAMES[phase]);
}

function liveChunk(model: TranscriptModel, live: LiveModel, start: number): Element {
  const { state, labels } = model;
  const placeholder = h('div', { class: 'chunk', 'data-place': start });
  const events = model.events.slice(start, start + CHUNK_EVENTS);
  if (!live.isDrawn(start) && !events.some(({ eventId }) => eventId === live.linked)) return placeholder;
  const marks = events.map(({ eventId }) => {
    return live.linked === eventId ? `#${live.markOf(eventId)}` : live.markOf(eventId)[0];
  });
  // Includes everything that a chunk depends on besides its events.
  const replies = events.reduce((sum, { eventId }) => sum + (model.replies.get(eventId)?.length ?? 0), 0);
  const version = `${state.members.length} ${state.ends.lobbyDeadline} ${labels.size} ${replies} ${marks.join('')}`;
  return live.memo(start, version, () => chunk(model, start)) ?? placeholder;
}

function chunk(model: TranscriptModel, start: number): Element {
  const before = model.events[start - 1];
  let phase = before && phaseOf(before, model);
  const children: Element[] = [];
  for (const turn of turnsOf(model, model.events.slice(start, start + CHUNK_EVENTS))) {
    const [first] = turn;
    const next = phaseOf(first, model);
    if (next !== phase) children.push(divider(next));
    phase = next;
    const isContinued = children.length === 0 && before !== undefined && isSameTurn(before, first, model);
    children.push(turnView(turn, model, isContinued));
  }
  return h('div', { class: 'chunk', 'data-place': model.live && start }, ...children);
}

function phaseOf(event: ChamberEvent, { state }: ChamberModel): Phase {
  // The relayer's events follow the reveal.
  return isMove(event) ? phaseOfMove(state, event) : 'COMMITTED';
}

type Turn = [ChamberEvent, ...ChamberEvent[]];

function turnsOf(model: ChamberModel, events: readonly ChamberEvent[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const event of events) {
    const turn = turns.at(-1);
    const last = turn?.at(-1);
    if (last !== undefined && isSameTurn(last, event, model)) turn?.push(event);
    else turns.push([event]);
  }
  return turns;
}

/** A turn consists of consecutive events of one agent in one phase, and ends with the agent's pass. */
function isSameTurn(last: ChamberEvent, event: ChamberEvent, model: ChamberModel): boolean {
  const isSameAgent = last.did === event.did && last.type !== 'chamber.passed';
  return isSameAgent && phaseOf(last, model) === phaseOf(event, model);
}

function turnView(turn: Turn, model: TranscriptModel, isContinued: boolean): Element {
  const [{ did, ts }] = turn;
  const dot = h('b', { class: 'dot cnone', 'aria-hidden': 'true' }, 'R');
  const speaker = did === null ? h('span', { class: 'agent' }, dot, 'Relayer') : agent(did, model);
  const at = time(instantOf(ts), model.state.ends.lobbyDeadline);
  const head = h('header', {}, speaker, h('span', { class: 'at' }, at));
  const entries = turn.map((event) => entry(event, model));
  return h('article', { class: isContinued ? 'turn continued' : 'turn' }, !isContinued && head, ...entries);
}

function entry(event: ChamberEvent, model: TranscriptModel): Element {
  const { eventId } = event;
  const { live } = model;
  const link = h('a', { class: 'id', href: `#e${eventId}`, 'aria-label': `event ${eventId}` }, `#${eventId}`);
  const isLinked = live?.linked === eventId;
  return h(
    'div',
    { id: `e${eventId}`, class: isLinked ? 'entry linked' : 'entry' },
    h('span', { class: 'meta' }, link, live && eventMark(live.markOf(eventId))),
    h('div', { class: 'said' }, ...content(event, model), repliesView(eventId, model)),
  );
}

/** Further replies are only counted. */
const REPLIES_NAMED_MAX = 12;

function repliesView(eventId: number, model: TranscriptModel): Element | false {
  const replies = model.replies.get(eventId);
  if (replies === undefined) return false;
  const named = replies
    .slice(0, REPLIES_NAMED_MAX)
    .map((reply) => [' ', eventLink(reply.eventId, model), ' ', author(reply, model)]);
  const more = replies.length - named.length;
  return h('p', { class: 'facts replies' }, '↳ answered in', ...named.flat(), more > 0 && ` and ${more} more`);
}

function author({ did }: ChamberEvent, model: ChamberModel): Child {
  return did !== null && agent(did, model);
}

/** Links an event that is not on the page to its line in the log. */
function eventLink(eventId: number, { state, events }: ChamberModel): Element {
  const isShown = eventId >= (events[0]?.eventId ?? 0);
  const href = isShown ? `#e${eventId}` : `${state.chamberId}/events?after=${eventId - 1}&limit=1`;
  return h('a', { class: 'id', href }, `#${eventId}`);
}

function content(event: ChamberEvent, model: ChamberModel): readonly Child[] {
  const { withheld } = event;
  if (withheld === undefined) return describeEvent(event, model);
  const reason = `The service has withheld what was written here: ${withheld.reason}`;
  return [...describeEvent(event, model), h('p', { class: 'facts withheld' }, reason)];
}

function describeEvent(event: ChamberEvent, model: ChamberModel): readonly Child[] {
  const { state } = model;
  switch (event.type) {
    case 'chamber.created':
      return [action('created the chamber')];
    case 'chamber.joined':
      return [action(`joined as number ${event.payload.turnOrder + 1}`)];
    case 'chamber.admitted':
      return [action('admitted ', agent(event.payload.did, model))];
    case 'chamber.proposed':
      return [action('proposed ', ticker(event.payload.ticker), ' ', foreign(event.payload.name))];
    case 'chamber.debated': {
      const { ideaId, comment, refinement, replyTo, stance } = event.payload;
      return [
        (ideaId !== null || replyTo !== undefined) &&
          h(
            'p',
            { class: 'about' },
            replyTo !== undefined && ['in reply to ', eventLink(replyTo, model), ' '],
            ideaId !== null && [stance === undefined ? 'on ' : `${stance} `, tickerOf(ideaId, state)],
          ),
        foreignBlock(comment),
        refinement != null && refinementView(refinement, event, model),
      ];
    }
    case 'chamber.amended': {
      const { ideaId, version, name, description } = event.payload;
      return [
        action(
          'amended ',
          tickerOf(ideaId, state),
          `, version ${version}`,
          name !== undefined && [': ', foreign(name)],
        ),
        description !== undefined && foreignBlock(description),
      ];
    }
    case 'chamber.withdrawn':
      return [action('withdrew ', tickerOf(event.payload.ideaId, state))];
    case 'chamber.started':
      return [action('started the chamber')];
    case 'chamber.passed':
      return [action('passed the turn to ', agent(event.payload.nextTurnAgent, model))];
    case 'allocation.committed':
      return [action('committed to an allocation: ', hash(event.payload.commitment))];
    case 'allocation.revealed': {
      const parts = event.payload.allocations.map(({ ideaId, bps }, index) => [
        `${index === 0 ? '' : ','} ${percent(bps)} `,
        tickerOf(ideaId, state),
      ]);
      return [action('revealed an allocation:', parts.length === 0 ? ' nothing allocated' : parts)];
    }
    case 'relay.commit_submitted':
      return [action('sent the root in transaction ', hash(event.payload.txHash))];
    case 'chamber.committed':
      return [action('the chain holds the root ', hash(event.payload.merkleRoot))];
    case 'relay.deploy_submitted':
      return [
        action('sent the deployment of ', tickerOf(event.payload.ideaId, state), ' in ', hash(event.payload.txHash)),
      ];
    case 'idea.deployed':
      return [action(tickerOf(event.payload.ideaId, state), ' is deployed at ', hash(event.payload.tokenAddress))];
    case 'idea.deploy_failed':
      return [action(tickerOf(event.payload.ideaId, state), ' was not deployed: ', foreign(event.payload.reason))];
    default:
      return unreachable(event);
  }
}

/** A deeply nested refinement is many times longer when it is indented. */
const INDENTED_CHARS_MAX = 32_768;
const REFINEMENT_CHARS_MAX = 8_192;
/** A refinement that fits on one line is not folded. */
const LINE_CHARS_MAX = 80;

function refinementView(refinement: JsonObject, { eventId }: ChamberEvent, { state, live }: ChamberModel): Element {
  const stance = stanceOf(refinement);
  if (stance !== undefined) return facts('stance: ', foreign(stance));
  const isShort = indentedChars(refinement) <= INDENTED_CHARS_MAX;
  const text = JSON.stringify(refinement, null, isShort ? INDENT : 0);
  if (text.length <= LINE_CHARS_MAX) {
    return facts('refinement ', h('code', { class: 'refinement', dir: 'auto' }, text));
  }
  const shown = isShort ? text : text.slice(0, REFINEMENT_CHARS_MAX).toWellFormed();
  const href = `${state.chamberId}/events?after=${eventId - 1}&limit=1`;
  const isCut = shown.length < text.length;
  return h(
    'details',
    {},
    h('summary', {}, 'Refinement'),
    h('pre', { dir: 'auto' }, shown, isCut && ' […]'),
    // A file may come from another service.
    isCut && live?.file === undefined && facts(h('a', { href }, 'All of it, in the line of the log')),
  );
}

/** Returns the stance of a refinement that contains nothing else. */
function stanceOf({ stance, ...others }: JsonObject): string | undefined {
  const isShort = typeof stance === 'string' && stance !== '' && stance.length <= LINE_CHARS_MAX;
  return isShort && Object.keys(others).length === 0 ? stance : undefined;
}

const INDENT = 2;

/** Returns an upper bound on the length of JSON.stringify with INDENT. */
function indentedChars(value: JsonValue, depth = 0): number {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value).length;
  const line = 2 + INDENT * (depth + 1);
  let chars = line + 2;
  for (const [name, member] of Object.entries(value as JsonObject)) {
    const label = Array.isArray(value) ? 0 : JSON.stringify(name).length + 2;
    chars += line + label + indentedChars(member, depth + 1);
  }
  return chars;
}

function action(...children: readonly Child[]): Element {
  return h('p', { class: 'act' }, ...children);
}

function tickerOf(ideaId: string, { ideas }: ChamberState): Element {
  return ticker(ideas.find((idea) => idea.ideaId === ideaId)?.ticker ?? ideaId);
}
