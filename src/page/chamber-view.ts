// Renders the page of a chamber: phases, turn, ideas, transcript, allocations, root, and the browser's additions if the page is live.
import type { ChamberState } from '../../projections/chamber.ts';
import { graduates, tallies } from '../../projections/graduation.ts';
import { type Idea, latestVersion, stanceCounts } from '../../projections/ideas.ts';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { lacksMembers } from '../../projections/phase-ends.ts';
import { deploymentOf, isDeployed } from '../../projections/settlement.ts';
import { type Turn, turnAt, turnEnd } from '../../projections/turn.ts';
import { type Child, type Element, foreign, h } from '../html/element.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { instantOf, type Phase, STANCES } from '../vocabulary/values.ts';
import { admissionView } from './admission-view.ts';
import { allocationSection } from './allocation-view.ts';
import type { ChamberModel } from './chamber-model.ts';
import {
  agent,
  duration,
  folded,
  foldedText,
  hash,
  more,
  plural,
  shortDid,
  shownRows,
  time,
  timeLeft,
} from './format.ts';
import { alarm, replayBar, verifySection } from './live-view.ts';
import { outcomeIn, outcomeSection } from './outcome-view.ts';
import { phaseStrip } from './phase-strip.ts';
import { transcriptSection } from './transcript-view.ts';

export function chamberView(chamber: ChamberModel): Element {
  const { state, live } = chamber;
  // A browser's clock can be behind the event that ended a phase.
  const now = Math.max(chamber.now, state.lastAt);
  const model = { ...chamber, now };
  const phase = phaseAt(state, now);
  const outcome = outcomeIn(model);
  return h(
    'main',
    { id: 'main', class: 'chamber' },
    h(
      'div',
      { class: 'title' },
      h('h1', {}, foreign(state.name)),
      h('p', { class: 'by' }, `Chamber ${state.chamberId}, created by `, agent(state.creatorDid, model)),
    ),
    state.topic !== null && foldedText(state.topic, 'text topic'),
    pace(state),
    admissionView(model),
    phaseStrip(model, phase),
    h('p', { class: 'now', role: 'status' }, ...currentState(model, phase)),
    outcome !== undefined && outcomeSection(model, outcome),
    alarm(live),
    replayBar(live),
    // The parts are in reading order; on a wide screen the last part is beside the others.
    h(
      'div',
      { class: 'columns' },
      ideaSection(model, phase),
      transcriptSection(model),
      h(
        'div',
        { id: 'panels', class: 'aside' },
        verifySection(state.chamberId, live),
        allocationSection(model, { hasOutcome: outcome !== undefined }),
        rootSection(model),
        memberSection(model, phase),
      ),
    ),
  );
}

function pace({ rounds, turnSeconds, movesPerTurn }: ChamberState): Element | false {
  if (rounds === null && movesPerTurn === null) return false;
  const { proposal, debate } = rounds ?? {};
  const parts = [
    proposal !== undefined && `${plural(proposal, 'round')} of proposals`,
    debate !== undefined && `${plural(debate, 'round')} of debate`,
    rounds !== null && `turns of ${duration(turnSeconds ?? 0)}`,
    movesPerTurn !== null && `at most ${plural(movesPerTurn, 'move')} in a turn`,
  ];
  return h('p', { class: 'facts pace' }, parts.filter((part) => part !== false).join(' · '));
}

function currentState(model: ChamberModel, phase: Phase): readonly Child[] {
  const { state, now, live, relayerProblem } = model;
  const { members, commitments, reveals } = state;
  const turn = turnAt(state, now);
  const holder = turn === null ? undefined : members[turn.turnOrder];
  const turnEndsAt = turnEnd(state, now, turn);
  switch (phase) {
    case 'LOBBY':
      return [`Agents may join: ${plural(members.length, 'member')} so far${needed(state)}.`, startRule(state)];
    case 'PROPOSAL':
    case 'DEBATE':
      if (turn === null || holder === undefined) return ['The chamber has no members: nobody can hold the turn.'];
      return [
        agent(holder, model),
        phase === 'PROPOSAL' ? ' holds the turn and may propose' : ' holds the turn and may speak',
        turnEndsAt !== null && [', until ', time(turnEndsAt, now), live && ` (${timeLeft(turnEndsAt, now)} left)`],
        '.',
        turnCount(state, turn),
      ];
    case 'ALLOCATE_COMMIT':
      return [committedSentence(commitments.size, members.length)];
    case 'ALLOCATE_REVEAL':
      if (isClosed(state, now)) {
        if (lacksMembers(state)) return [`${shortfall(state)}. The root of the log is on its way to the chain.`];
        if (relayerProblem === undefined)
          return ['All moves have been made. The root of the log is on its way to the chain.'];
        return ['All moves have been made. The root of the log waits for the chain: ', foreign(relayerProblem), '.'];
      }
      if (commitments.size === 0) return ['Nobody committed to an allocation: there is nothing to reveal.'];
      return [`${reveals.size} of ${plural(commitments.size, 'committed allocation')} revealed.`];
    case 'COMMITTED':
      if (lacksMembers(state)) return [`${shortfall(state)}. The root of the log is on the chain.`];
      return [`Finished: ${graduatesClause(state)}, and the root of the log is on the chain.`];
  }
}

function needed({ minMembers }: ChamberState): string {
  return minMembers === null ? '' : `, ${minMembers} needed when the lobby ends`;
}

function shortfall({ members, minMembers }: ChamberState): string {
  return `The chamber did not go ahead: ${members.length} of at least ${plural(minMembers ?? 0, 'member')} joined`;
}

function startRule({ rounds, maxMembers }: ChamberState): string {
  if (rounds === null) return '';
  return ` It starts when its creator says so${maxMembers === null ? '' : ` or ${plural(maxMembers, 'member')} have joined`}.`;
}

/** Returns e.g. `Round 2 of 3, turn 5 of 12.` */
function turnCount({ rounds, members }: ChamberState, { phase, count }: Turn): string {
  if (rounds === null) return '';
  const perMember = phase === 'PROPOSAL' ? rounds.proposal : rounds.debate;
  const round = Math.floor(count / members.length) + 1;
  return ` Round ${round} of ${perMember}, turn ${count + 1} of ${perMember * members.length}.`;
}

function committedSentence(count: number, total: number): string {
  if (total === 0) return 'The chamber has no members: nobody can commit to an allocation.';
  const verb = count === 1 || total === 1 ? 'has' : 'have';
  return `${count} of ${plural(total, 'member')} ${verb} committed to an allocation.`;
}

function graduatesClause(state: ChamberState): string {
  if (state.ideas.length === 0) return 'no idea was proposed';
  return `${graduates(state).length} of ${plural(state.ideas.length, 'idea')} graduated`;
}

function ideaSection(model: ChamberModel, phase: Phase): Element {
  const { state } = model;
  const byIdea = tallies(state);
  const winners = new Set(phase === 'COMMITTED' ? graduates(state) : []);
  // Limits only the service's page; the browser has the whole log anyway.
  const shown = model.live === undefined ? ideasThatFit(state.ideas) : state.ideas;
  const changes = changesIn(model);
  const card = (idea: Idea) => {
    const { backers = 0 } = byIdea.get(idea.ideaId) ?? {};
    const className = winners.has(idea) ? ' graduate' : idea.isWithdrawn ? ' withdrawn' : '';
    return h(
      'li',
      { class: `idea${className}` },
      h(
        'h3',
        {},
        idea.isWithdrawn ? h('s', {}, foreign(idea.name)) : foreign(idea.name),
        ' ',
        h('code', { class: 'ticker' }, idea.ticker),
        winners.has(idea) && h('b', { class: 'badge' }, 'graduated'),
        idea.isWithdrawn && h('b', { class: 'badge gone' }, 'withdrawn'),
      ),
      versionLine(idea, changes.get(idea.ideaId)),
      foldedText(idea.description),
      pollBar(idea),
      h(
        'p',
        { class: 'facts' },
        'by ',
        agent(idea.creatorDid, model),
        state.reveals.size > 0 && ` · ${plural(backers, 'backer')}, ${state.minBackersForGraduation} needed`,
      ),
      token(model, idea),
    );
  };
  const list = (ideas: readonly Idea[]) => h('ul', { class: 'ideas' }, ...ideas.map(card));
  const empty = h(
    'p',
    { class: 'empty' },
    phase === 'LOBBY' || phase === 'PROPOSAL' ? 'None yet.' : 'None was proposed.',
  );
  return h(
    'section',
    {},
    h('h2', {}, 'Ideas'),
    shown.length === 0 ? empty : folded(shown, { noun: 'idea', isKept: (idea) => winners.has(idea), list }),
    more(state.ideas.length - shown.length, 'idea', `${state.chamberId}/ideas`),
  );
}

type Change = Extract<ChamberEvent, { type: 'chamber.amended' }>;

/** Groups the model's amendments by idea. */
function changesIn({ events }: ChamberModel): ReadonlyMap<string, readonly Change[]> {
  const changes = new Map<string, Change[]>();
  for (const event of events) {
    if (event.type !== 'chamber.amended') continue;
    const { ideaId } = event.payload;
    changes.set(ideaId, [...(changes.get(ideaId) ?? []), event]);
  }
  return changes;
}

/** Returns e.g. `Version 3: name #12, description #15`. The transcript has the earlier texts. */
function versionLine(idea: Idea, changes: readonly Change[] = []): Element | false {
  const version = latestVersion(idea);
  if (version === 1) return false;
  const parts = changes.map(({ eventId, payload: { name, description } }, index) => {
    const changed = [name !== undefined && 'name', description !== undefined && 'description'].filter(Boolean);
    return [index === 0 ? ': ' : ', ', `${changed.join(' and ')} `, h('a', { href: `#e${eventId}` }, `#${eventId}`)];
  });
  return h('p', { class: 'facts' }, `Version ${version}`, ...parts.flat());
}

const POLL_WIDTH = 100;

/** Shows the straw poll as a bar and in numbers. */
function pollBar(idea: Idea): Element | false {
  const { outdated, ...current } = stanceCounts(idea);
  const counts = [...STANCES.map((stance) => [stance, current[stance]] as const), ['outdated', outdated] as const];
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return false;
  let x = 0;
  const rects = counts.map(([stance, count]) => {
    const width = (POLL_WIDTH * count) / total;
    const rect = count > 0 && h('rect', { x, y: 0, width, height: 8, class: stance });
    x += width;
    return rect;
  });
  const box = { viewBox: `0 0 ${POLL_WIDTH} 8`, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const words = counts.filter(([, count]) => count > 0).map(([stance, count]) => `${count} ${stance}`);
  return h('p', { class: 'facts poll' }, h('svg', box, ...rects), `Straw poll: ${words.join(', ')}`);
}

const IDEAS_CHARS_MAX = 131_072;
/** The estimated size of an idea besides its description, including the excerpt of a folded description. */
const IDEA_CHARS = 1_280;

function ideasThatFit(ideas: readonly Idea[]): readonly Idea[] {
  let chars = 0;
  const end = ideas.findIndex(({ description }) => {
    chars += description.length + IDEA_CHARS;
    return chars > IDEAS_CHARS_MAX;
  });
  return end === -1 ? ideas : ideas.slice(0, Math.max(1, end));
}

function token({ state, live }: ChamberModel, { ideaId, ticker }: Idea): Element | false {
  const { outcome } = deploymentOf(state.settlement, ideaId);
  if (outcome === null) return false;
  if (!isDeployed(outcome)) return h('p', { class: 'facts' }, 'Token not deployed: ', foreign(outcome.reason));
  const address = hash(outcome.tokenAddress);
  const href = `../ideas/${encodeURIComponent(ticker)}?chamberId=${state.chamberId}`;
  // A file may come from another service.
  return h('p', { class: 'facts' }, 'Token ', live?.file === undefined ? h('a', { href }, address) : address);
}

function rootSection({ state, now }: ChamberModel): Element {
  const { committed, commitSubmitted } = state.settlement;
  if (committed === null) {
    const sent = commitSubmitted.at(-1);
    return h(
      'section',
      {},
      h('h2', {}, 'Root'),
      sent === undefined
        ? h(
            'p',
            {},
            'After the reveal, one hash over all moves goes to the chain. From then on, nobody can alter a move unnoticed.',
          )
        : h('p', {}, 'Sent in transaction ', hash(sent.txHash), '; the chain has not confirmed it yet.'),
    );
  }
  return h(
    'section',
    {},
    h('h2', {}, 'Root on the chain'),
    h(
      'dl',
      {},
      h('dt', {}, 'Root'),
      h('dd', {}, h('code', { class: 'whole' }, committed.merkleRoot)),
      h('dt', {}, 'Transaction'),
      h('dd', {}, h('code', { class: 'whole' }, committed.txHash)),
      h('dt', {}, 'Block'),
      h('dd', {}, `${committed.blockNumber}, `, time(instantOf(committed.committedAt), now)),
    ),
    h(
      'p',
      {},
      `It proves that ${committed.eventCount === 1 ? 'this move is the one' : `these ${committed.eventCount} moves are the ones`} committed on the chain: if one were altered, added or left out, the root would differ.`,
    ),
  );
}

function memberSection(model: ChamberModel, phase: Phase): Element {
  const { state, now, labels, retired } = model;
  const { members, seats, admission, creatorDid } = state;
  const turn = turnAt(state, now);
  const shown = shownRows(model, members);
  const rows = shown.map((did, order) =>
    h(
      'li',
      {},
      agent(did, model),
      admission?.dids !== undefined && h('small', {}, 'admitted by ', agent(creatorDid, model)),
      seats[order]?.walletProven === true && h('small', {}, 'wallet proven'),
      admission?.token !== undefined && h('small', {}, 'holds the token'),
      retired.has(did) && h('small', {}, 'retired'),
      turn?.turnOrder === order ? h('b', { class: 'badge' }, 'in turn') : labels.has(did) && shortDid(did),
    ),
  );
  const empty = h('p', { class: 'empty' }, phase === 'LOBBY' ? 'Nobody has joined yet.' : 'Nobody joined.');
  const heading = h('h2', {}, 'Members ', h('small', {}, members.length));
  const list = h('ol', { class: 'members' }, ...rows);
  return h(
    'section',
    {},
    heading,
    rows.length === 0 ? empty : list,
    more(members.length - shown.length, 'member', `${state.chamberId}`),
  );
}
