// Every event as a conversation: by phase, then by agent, so that what one said in a turn stands together.
import type { ChamberState } from '../../projections/chamber.ts';
import { phaseBy } from '../../projections/phase.ts';
import { type ChamberEvent, isMove } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Phase } from '../vocabulary/values.ts';
import type { ChamberModel } from './chamber-view.ts';
import { type Child, type Element, foreign, foreignBlock, h } from './element.ts';
import { agent, hash, PHASE_NAMES, percent, time } from './format.ts';
import { eventMark, type LiveModel } from './live-view.ts';

/** Drawn, and drawn anew, as one. */
const CHUNK_EVENTS = 50;

export function transcriptSection(model: ChamberModel): Element {
  const { state, events, live } = model;
  const first = events[0]?.eventId ?? 1;
  const chunks: Element[] = [];
  for (let start = 0; start < events.length; start += CHUNK_EVENTS) {
    const make = () => chunk(model, start);
    chunks.push(live === undefined ? make() : live.memo(start, versionOf(model, live, start), make));
  }
  const allLines = h('a', { href: `${state.chamberId}/events` }, 'All lines');
  return h(
    'section',
    { class: 'transcript' },
    h('h2', {}, 'Transcript'),
    first > 1 && h('p', { class: 'facts' }, `The last events, from number ${first}. `, allLines),
    ...chunks,
  );
}

/** What a chunk is drawn from, besides its events: one that changes is drawn anew. */
function versionOf({ state, events, labels }: ChamberModel, live: LiveModel, start: number): string {
  const marks = events.slice(start, start + CHUNK_EVENTS).map(({ eventId }) => {
    return live.linked === eventId ? `#${live.markOf(eventId)}` : live.markOf(eventId)[0];
  });
  return `${state.members.length} ${labels.size} ${marks.join('')}`;
}

function chunk(model: ChamberModel, start: number): Element {
  const before = model.events[start - 1];
  let phase = before && phaseOf(before, model);
  const events = model.events.slice(start, start + CHUNK_EVENTS);
  const children: Element[] = [];
  for (const turn of turnsOf(model, events)) {
    const next = phaseOf(turn[0], model);
    if (next !== phase) children.push(h('h3', { class: 'divider' }, PHASE_NAMES[next]));
    phase = next;
    children.push(turnView(turn, model));
  }
  // Of what is not on the screen only the size counts: that of a whole one is known well enough.
  return h('div', { class: events.length === CHUNK_EVENTS ? 'chunk' : undefined }, ...children);
}

function phaseOf(event: ChamberEvent, { state }: ChamberModel): Phase {
  // The relayer's events follow the last deadline.
  return isMove(event) ? phaseBy(state.deadlines, false, Date.parse(event.ts)) : 'COMMITTED';
}

type Turn = [ChamberEvent, ...ChamberEvent[]];

/** What one agent did in a row in one phase. A turn ends with its pass. */
function turnsOf(model: ChamberModel, events: readonly ChamberEvent[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const event of events) {
    const turn = turns.at(-1);
    const last = turn?.at(-1);
    const isSame = last?.did === event.did && last.type !== 'chamber.passed';
    if (isSame && phaseOf(last, model) === phaseOf(event, model)) turn?.push(event);
    else turns.push([event]);
  }
  return turns;
}

function turnView(turn: Turn, model: ChamberModel): Element {
  const [{ did, ts }] = turn;
  const who =
    did === null
      ? h('span', { class: 'agent' }, h('b', { class: 'dot cnone', 'aria-hidden': 'true' }, '⛓'), 'Relayer')
      : agent(did, model);
  const at = time(Date.parse(ts), model.state.deadlines.lobbyDeadline);
  const head = h('header', {}, who, h('span', { class: 'at' }, at));
  return h('article', { class: 'turn' }, head, ...turn.map((event) => entry(event, model)));
}

function entry(event: ChamberEvent, model: ChamberModel): Element {
  const { eventId } = event;
  const { live } = model;
  const link = h('a', { class: 'id', href: `#e${eventId}`, 'aria-label': `event ${eventId}` }, `#${eventId}`);
  const isLinked = live?.linked === eventId;
  return h(
    'div',
    { id: `e${eventId}`, class: isLinked ? 'entry linked' : 'entry' },
    h('span', { class: 'meta' }, link, live && eventMark(live.markOf(eventId))),
    h('div', { class: 'said' }, ...content(event, model)),
  );
}

function content(event: ChamberEvent, model: ChamberModel): readonly Child[] {
  const { state } = model;
  switch (event.type) {
    case 'chamber.created':
      return [act('created the chamber')];
    case 'chamber.joined':
      return [act(`joined as number ${event.payload.turnOrder + 1}`)];
    case 'chamber.proposed':
      return [act('proposed ', h('code', { class: 'ticker' }, event.payload.ticker), ' ', foreign(event.payload.name))];
    case 'chamber.debated': {
      const { ideaId, comment, refinement } = event.payload;
      return [
        ideaId !== null && h('p', { class: 'about' }, 'on ', ticker(ideaId, state)),
        foreignBlock(comment),
        refinement !== null &&
          h(
            'details',
            {},
            h('summary', {}, 'Refinement'),
            h('pre', { dir: 'auto' }, JSON.stringify(refinement, null, 2)),
          ),
      ];
    }
    case 'chamber.passed':
      return [act('passed the turn to ', agent(event.payload.nextTurnAgent, model))];
    case 'allocation.committed':
      return [act('sealed an allocation: ', hash(event.payload.commitment))];
    case 'allocation.revealed': {
      const parts = event.payload.allocations.map(({ ideaId, bps }) => [` ${percent(bps)} `, ticker(ideaId, state)]);
      return [act('opened the envelope:', parts.length === 0 ? ' nothing allocated' : parts)];
    }
    case 'relay.commit_submitted':
      return [act('sent the root in transaction ', hash(event.payload.txHash))];
    case 'chamber.committed':
      return [act('the chain holds the root ', hash(event.payload.merkleRoot))];
    case 'relay.deploy_submitted':
      return [act('sent the deployment of ', ticker(event.payload.ideaId, state), ' in ', hash(event.payload.txHash))];
    case 'idea.deployed':
      return [act(ticker(event.payload.ideaId, state), ' is deployed at ', hash(event.payload.tokenAddress))];
    case 'idea.deploy_failed':
      return [act(ticker(event.payload.ideaId, state), ' was not deployed: ', foreign(event.payload.reason))];
    default:
      return unreachable(event);
  }
}

function act(...children: readonly Child[]): Element {
  return h('p', { class: 'act' }, ...children);
}

function ticker(ideaId: string, { ideas }: ChamberState): Element {
  return h('code', { class: 'ticker' }, ideas.find((idea) => idea.ideaId === ideaId)?.ticker ?? ideaId);
}
