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

interface Block {
  readonly phase: Phase;
  readonly did: string | null;
  readonly events: ChamberEvent[];
}

export function transcriptSection({ state, events, live }: ChamberModel): Element {
  const first = events[0]?.eventId ?? 1;
  const children: Element[] = [];
  let phase: Phase | undefined;
  for (const block of blocksOf(state, events)) {
    if (block.phase !== phase) children.push(h('h3', { class: 'divider' }, PHASE_NAMES[block.phase]));
    phase = block.phase;
    const make = () => blockView(block, state, live);
    children.push(live === undefined ? make() : live.memo(memoKey(block, live), make));
  }
  return h(
    'section',
    { class: 'transcript' },
    h('h2', {}, 'Transcript'),
    first > 1 &&
      h(
        'p',
        { class: 'facts' },
        `The last events, from number ${first}. `,
        h('a', { href: `${state.chamberId}/events` }, 'All lines'),
      ),
    ...children,
  );
}

function blocksOf(state: ChamberState, events: readonly ChamberEvent[]): readonly Block[] {
  const blocks: Block[] = [];
  for (const event of events) {
    // The relayer's events follow the last deadline.
    const phase = isMove(event) ? phaseBy(state.deadlines, false, Date.parse(event.ts)) : 'COMMITTED';
    const last = blocks.at(-1);
    if (last !== undefined && last.phase === phase && continues(last, event)) last.events.push(event);
    else blocks.push({ phase, did: event.did, events: [event] });
  }
  return blocks;
}

/** Of a long turn: what is drawn anew for one more event stays small. */
const BLOCK_EVENTS_MAX = 20;

/** A turn ends with its pass. */
function continues({ did, events }: Block, event: ChamberEvent): boolean {
  return did === event.did && events.length < BLOCK_EVENTS_MAX && events.at(-1)?.type !== 'chamber.passed';
}

function memoKey({ events }: Block, live: LiveModel): string {
  return events.map(({ eventId }) => `${eventId}${live.markOf(eventId)}${live.linked === eventId ? '#' : ''}`).join();
}

function blockView({ did, events }: Block, state: ChamberState, live: LiveModel | undefined): Element {
  const who =
    did === null
      ? h('span', { class: 'agent' }, h('b', { class: 'dot cnone', 'aria-hidden': 'true' }, '⛓'), 'Relayer')
      : agent(did, state.members);
  const [first] = events;
  const at = first === undefined ? false : time(Date.parse(first.ts), state.deadlines.lobbyDeadline);
  const head = h('header', {}, who, h('span', { class: 'at' }, at));
  return h('article', { class: 'turn' }, head, ...events.map((event) => entry(event, state, live)));
}

function entry(event: ChamberEvent, state: ChamberState, live: LiveModel | undefined): Element {
  const { eventId } = event;
  const link = h('a', { class: 'id', href: `#e${eventId}`, 'aria-label': `event ${eventId}` }, `#${eventId}`);
  const isLinked = live?.linked === eventId;
  return h(
    'div',
    { id: `e${eventId}`, class: isLinked ? 'entry linked' : 'entry' },
    h('span', { class: 'meta' }, link, live && eventMark(live.markOf(eventId))),
    h('div', { class: 'said' }, ...content(event, state)),
  );
}

function content(event: ChamberEvent, state: ChamberState): readonly Child[] {
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
      return [act('passed the turn to ', agent(event.payload.nextTurnAgent, state.members))];
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
