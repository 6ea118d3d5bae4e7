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
  bar,
  duration,
  empty,
  facts,
  folded,
  foldedText,
  hash,
  ideaName,
  more,
  plural,
  section,
  shortDid,
  shownRows,
  ticker,
  time,
  timeLeft,
} from './format.ts';
import { alarm, replayBar, verifySection } from './live-view.ts';
import { outcomeIn, outcomeSection, tokenLink } from './outcome-view.ts';
import { phaseStrip } from './phase-strip.ts';
import { transcriptSection } from './transcript-view.ts';

export function chamberView(chamber: ChamberModel): Element {
  const { state, live } = chamber;
  // A browser's clock can be behind the event that ended a phase.
  const now = Math.max(chamber.now, state.lastAt);
  const model = { ...chamber, now };
  const phase = phaseAt(state, now);
  const outcome = outcomeIn(model);
  const by = h('p', { class: 'by' }, `Chamber ${state.chamberId}, created by `, agent(state.creatorDid, model));
  return h(
    'main',
    { id: 'main', class: 'chamber' },
    h('div', { class: 'title' }, h('h1', {}, foreign(state.name)), by),
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
  const support = (backers: number) => ` · ${plural(backers, 'backer')}, ${state.minBackersForGraduation} needed`;
  const card = (idea: Idea) => {
    const { backers = 0 } = byIdea.get(idea.ideaId) ?? {};
    const className = winners.has(idea) ? ' graduate' : idea.isWithdrawn ? ' withdrawn' : '';
    const graduated = winners.has(idea) && h('b', { class: 'badge' }, 'graduated');
    const withdrawn = idea.isWithdrawn && h('b', { class: 'badge gone' }, 'withdrawn');
    return h(
      'li',
      { class: `idea${className}` },
      h('h3', {}, ideaName(idea.name, idea.isWithdrawn), ' ', ticker(idea.ticker), graduated, withdrawn),
      versionLine(idea, changes.get(idea.ideaId)),
      foldedText(idea.description),
      pollBar(idea),
      facts('by ', agent(idea.creatorDid, model), state.reveals.size > 0 && support(backers)),
      token(model, idea),
    );
  };
  const list = (ideas: readonly Idea[]) => h('ul', { class: 'ideas' }, ...ideas.map(card));
  const none = empty(phase === 'LOBBY' || phase === 'PROPOSAL' ? 'None yet.' : 'None was proposed.');
  return section(
    'Ideas',
    shown.length === 0 ? none : folded(shown, { noun: 'idea', isKept: (idea) => winners.has(idea), list }),
    more(state.ideas.length - shown.length, 'idea', `${state.chamberId}/ideas`),
  );
}

type Change = Extract<ChamberEvent, { type: 'chamber.amended' }>;

/** Groups the model's amendments by idea. */
function changesIn({ events }: ChamberModel): ReadonlyMap<string, readonly Change[]> {
  const changes = events.filter((event) => event.type === 'chamber.amended');
  return Map.groupBy(changes, ({ payload }) => payload.ideaId);
}

/** Returns e.g. `Version 3: name #12, description #15`. The transcript has the earlier texts. */
function versionLine(idea: Idea, changes: readonly Change[] = []): Element | false {
  const version = latestVersion(idea);
  if (version === 1) return false;
  const parts = changes.map(({ eventId, payload: { name, description } }, index) => {
    const changed = [name !== undefined && 'name', description !== undefined && 'description'].filter(Boolean);
    return [index === 0 ? ': ' : ', ', `${changed.join(' and ')} `, h('a', { href: `#e${eventId}` }, `#${eventId}`)];
  });
  return facts(`Version ${version}`, ...parts.flat());
}

/** Shows the straw poll as a bar and in numbers. */
function pollBar(idea: Idea): Element | false {
  const { outdated, ...current } = stanceCounts(idea);
  const all = [
    ...STANCES.map((stance) => ({ class: stance, size: current[stance] })),
    { class: 'outdated', size: outdated },
  ];
  const segments = all.filter(({ size }) => size > 0);
  if (segments.length === 0) return false;
  const total = segments.reduce((sum, { size }) => sum + size, 0);
  const words = segments.map((segment) => `${segment.size} ${segment.class}`);
  return h('p', { class: 'facts poll' }, bar(total, segments), `Straw poll: ${words.join(', ')}`);
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

function token(model: ChamberModel, idea: Idea): Element | false {
  const { outcome } = deploymentOf(model.state.settlement, idea.ideaId);
  if (outcome === null) return false;
  if (!isDeployed(outcome)) return facts('Token not deployed: ', foreign(outcome.reason));
  return facts('Token ', tokenLink(model, idea.ticker, outcome.tokenAddress));
}

const BEFORE_COMMIT =
  'After the reveal, one hash over all moves goes to the chain. From then on, nobody can alter a move unnoticed.';

function rootSection({ state, now }: ChamberModel): Element {
  const { committed, commitSubmitted } = state.settlement;
  if (committed === null) {
    const sent = commitSubmitted.at(-1);
    if (sent === undefined) return section('Root', h('p', {}, BEFORE_COMMIT));
    const transaction = hash(sent.txHash);
    return section('Root', h('p', {}, 'Sent in transaction ', transaction, '; the chain has not confirmed it yet.'));
  }
  const { eventCount } = committed;
  const moves = eventCount === 1 ? 'this move is the one' : `these ${eventCount} moves are the ones`;
  const meaning = `It proves that ${moves} committed on the chain: if one were altered, added or left out, the root would differ.`;
  return section(
    'Root on the chain',
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
    h('p', {}, meaning),
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
  const none = empty(phase === 'LOBBY' ? 'Nobody has joined yet.' : 'Nobody joined.');
  return section(
    ['Members ', h('small', {}, members.length)],
    rows.length === 0 ? none : h('ol', { class: 'members' }, ...rows),
    more(members.length - shown.length, 'member', `${state.chamberId}`),
  );
}
