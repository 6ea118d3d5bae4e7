// Tests phases, turns and ends of chambers with rounds: compares them with an independent oracle at random times, and row by row at exact
// milliseconds.
import { describe, expect, it } from 'vitest';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { knownEnds, phaseOf } from '../../projections/phase-ends.ts';
import { decodeState, encodeState } from '../../projections/snapshot.ts';
import { missedTurns, nextClockChange, turnHolderAt } from '../../projections/turn.ts';
import type { ChamberEvent, MoveFact } from '../../src/vocabulary/events.ts';
import { DEADLINES, type DeadlineName, PHASES, type Phase, toTimestamp } from '../../src/vocabulary/values.ts';
import {
  ANN,
  BOB,
  type Created,
  CYD,
  committed,
  created,
  EVE,
  ideaPayload,
  joined,
  passed,
  revealed,
  settled,
} from '../kit/brief-events.ts';
import { START } from '../kit/clock.ts';
import { type BriefEvent, eventsOf, fold, HOURS } from '../kit/given.ts';
import { Random } from '../kit/random.ts';
import { askOracle, type OracleAnswer, type OracleChamber } from './pace-oracle.ts';

const SEEDS = 20;
const PAIRS_PER_SEED = 5_000;
const DIDS = [ANN, BOB, CYD, EVE];
const COMMITMENT = `0x${'c0'.repeat(32)}` as const;

describe('the fold and the oracle', () => {
  it.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))(
    'the fold and the oracle agree on random chambers, seed %i',
    (seed) => {
      const random = new Random(seed);
      const reached = new Set<string>();
      for (let pairs = 0; pairs < PAIRS_PER_SEED; ) {
        const chamber = new RandomChamber(random);
        while (chamber.isUnfinished()) {
          pairs += chamber.compareUntilNextEvent();
          chamber.appendRandomMove();
        }
        pairs += chamber.compareUntilNextEvent();
        reached.add(phaseAt(chamber.state, chamber.now));
      }
      expect(reached, 'no chamber reached its end').toContain('COMMITTED');
    },
  );
});

/** A chamber with moves that the product accepts, at times close to changes of the chamber. */
class RandomChamber {
  readonly #random: Random;
  readonly #created: BriefEvent;
  readonly #chamber: OracleChamber;
  readonly #past: BriefEvent[];
  #events: readonly { readonly ts: number; readonly type: string; readonly did: string | null }[] = [];
  #previous: OracleAnswer | null = null;
  state: ChamberState;
  now = START;

  constructor(random: Random) {
    this.#random = random;
    const payload = randomPace(random);
    this.#created = created(payload);
    this.#chamber = {
      createdAt: START,
      deadlines: DEADLINES.map((name) => Date.parse(payload.deadlines[name])),
      turnSeconds: payload.turnSeconds ?? undefined,
      rounds: payload.rounds,
      maxMembers: payload.maxMembers,
      minMembers: payload.minMembers,
    };
    this.#past = [];
    this.state = this.#append(this.#created);
  }

  isUnfinished(): boolean {
    return this.state.settlement.committed === null;
  }

  /** Compares fold and oracle at several times, and returns their number. */
  compareUntilNextEvent(): number {
    const random = this.#random;
    const change = nextClockChange(this.state, this.now);
    const alarm = change === Number.POSITIVE_INFINITY ? this.now + 700 : change;
    const until = random.pick([this.now, this.now, this.now + 1, this.now + 500, alarm - 1, alarm, alarm + 2_500]);
    const between = this.now + random.below(Math.max(1, until - this.now));
    this.#compare(this.now - random.below(5_000));
    for (const instant of [this.now, between, until]) {
      const answer = this.#compare(instant);
      this.#requireNoRise(answer);
      this.#previous = answer;
    }
    this.now = until;
    return 4;
  }

  appendRandomMove(): void {
    const { state, now } = this;
    const fact = this.#randomFact();
    if (fact !== null) this.state = this.#append([now, fact.did, fact.fact], state);
    // Simulates a restart or an eviction.
    if (this.#random.chance(0.3)) this.state = decodeState(encodeState(this.state));
  }

  #randomFact(): { readonly did: string | null; readonly fact: BriefEvent[2] } | null {
    const { state, now } = this;
    const random = this.#random;
    switch (phaseAt(state, now)) {
      case 'LOBBY': {
        const canStart = state.rounds !== null && state.members.length >= (state.minMembers ?? 1);
        if (canStart && random.chance(0.3)) return { did: ANN, fact: { type: 'chamber.started', payload: {} } };
        const did = DIDS[state.members.length];
        if (did === undefined || state.members.length === state.maxMembers || random.chance(0.4)) return null;
        return { did, fact: { type: 'chamber.joined', payload: { turnOrder: state.members.length } } };
      }
      case 'PROPOSAL':
      case 'DEBATE': {
        const did = turnHolderAt(state, now);
        if (did === null || random.chance(0.1)) return null;
        if (random.chance(0.6)) return { did, fact: { type: 'chamber.passed', payload: { nextTurnAgent: did } } };
        return { did, fact: this.#randomSpeech(did) };
      }
      case 'ALLOCATE_COMMIT': {
        const did = state.members.find((member) => !state.commitments.has(member));
        if (did === undefined || random.chance(0.3)) return null;
        return { did, fact: { type: 'allocation.committed', payload: { commitment: COMMITMENT } } };
      }
      case 'ALLOCATE_REVEAL': {
        if (isClosed(state, now)) return { did: null, fact: settled[2] };
        const did = [...state.commitments.keys()].find((member) => !state.reveals.has(member));
        if (did === undefined || random.chance(0.3)) return null;
        return { did, fact: revealed(did, { 'idea-1': 1 })[2] };
      }
      case 'COMMITTED':
        return null;
    }
  }

  #randomSpeech(did: string): MoveFact {
    const { state } = this;
    const own = state.ideas.filter(({ creatorDid, isWithdrawn }) => creatorDid === did && !isWithdrawn);
    const ideaId = own.length > 0 && this.#random.chance(0.4) ? this.#random.pick(own).ideaId : undefined;
    const isProposal = phaseAt(state, this.now) === 'PROPOSAL';
    if (ideaId === undefined) return spoken(isProposal, did, state.ideas.length + 1);
    if (isProposal || this.#random.chance(0.4)) return { type: 'chamber.withdrawn', payload: { ideaId } };
    const version = (own.find((idea) => idea.ideaId === ideaId)?.versions.length ?? 0) + 1;
    return { type: 'chamber.amended', payload: { ideaId, version, name: `Version ${version}` } };
  }

  #append(past: BriefEvent, state: ChamberState | null = null): ChamberState {
    this.#past.push(past);
    const [at, did, fact] = past;
    this.#events = [...this.#events, { ts: at, type: fact.type, did }];
    const last = eventsOf(this.#past).at(-1) as ChamberEvent;
    return evolveChamber(state, last);
  }

  #compare(instant: number): OracleAnswer {
    const { state } = this;
    const ends = knownEnds(state, instant);
    const product: OracleAnswer = {
      phase: phaseAt(state, instant),
      holder: turnHolderAt(state, instant),
      ends: DEADLINES.map((name) => ends[name]),
      revealClosed: isClosed(state, instant),
      missed: state.members.map((_, turnOrder) => missedTurns(state, turnOrder, instant)),
    };
    const oracle = askOracle(this.#chamber, this.#events, instant);
    if (!isSame(product, oracle)) {
      const minimal = { created: this.#created[2].payload, events: this.#events, instant };
      expect({ ...minimal, answer: product }).toEqual({ ...minimal, answer: oracle });
    }
    return product;
  }

  /** A phase that has begun must not end later than it would have at the previous comparison. */
  #requireNoRise({ ends }: OracleAnswer): void {
    if (this.#previous === null) return;
    const begun = PHASES.indexOf(this.#previous.phase as Phase);
    for (const [phase, end] of this.#previous.ends.entries()) {
      if (phase <= begun && (ends[phase] ?? 0) > end) {
        expect({ events: this.#events, ends }, 'an end became later').toEqual({ events: this.#events, ends: [] });
      }
    }
  }
}

function isSame(product: OracleAnswer, oracle: OracleAnswer): boolean {
  const { phase, holder, revealClosed } = product;
  return (
    phase === oracle.phase &&
    holder === oracle.holder &&
    revealClosed === oracle.revealClosed &&
    product.ends.every((end, index) => end === oracle.ends[index]) &&
    product.missed.every((count, index) => count === oracle.missed[index])
  );
}

/** Phases of 0 to 20 s and turns of 1 to 4 s, so that deadlines, turns and moves often coincide. */
function randomPace(random: Random): Created {
  let deadline = START;
  const deadlines = DEADLINES.map((name, index) => {
    const isEmpty = index > 0 && random.chance(0.15);
    deadline += isEmpty ? 0 : 500 * (1 + random.below(40));
    return [name, toTimestamp(deadline)];
  });
  const isPaced = random.chance(0.85);
  const turnSeconds = isPaced || random.chance(0.5) ? 1 + random.below(4) : null;
  return {
    name: 'Random',
    deadlines: Object.fromEntries(deadlines) as Record<DeadlineName, string>,
    minBackersForGraduation: 1,
    turnSeconds,
    ...randomNumbers(random),
    ...(isPaced && { rounds: { proposal: 1 + random.below(3), debate: 1 + random.below(3) } }),
  };
}

function randomNumbers(random: Random): Pick<Created, 'maxMembers' | 'minMembers'> {
  const maxMembers = 2 + random.below(3);
  const minMembers = 1 + random.below(maxMembers);
  return { ...(random.chance(0.5) && { maxMembers }), ...(random.chance(0.3) && { minMembers }) };
}

function spoken(isProposal: boolean, did: string, slot = 1): MoveFact {
  return isProposal
    ? { type: 'chamber.proposed', payload: ideaPayload(did, slot, `T${slot}`) }
    : { type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } };
}

const SECOND = 1_000;
const TURN = 60 * SECOND;
/** The time at which the creator starts the chamber. */
const S = START + 5 * SECOND;
const STARTED: BriefEvent = [S, ANN, { type: 'chamber.started', payload: {} }];
const PACE = { turnSeconds: 60, rounds: { proposal: 3, debate: 3 } };

function paced(changes: Partial<Created> = {}): BriefEvent {
  return created({ ...PACE, ...changes });
}

const pass = (at: number, did: string): BriefEvent => passed(at, did, did);
const propose = (at: number, did: string): BriefEvent => [at, did, spoken(true, did)];
const debate = (at: number, did: string): BriefEvent => [at, did, spoken(false, did)];
const commit = (at: number, did: string): BriefEvent => [at, did, committed(did, COMMITMENT)[2]];
const reveal = (at: number, did: string): BriefEvent => [at, did, revealed(did, { 'idea-1': 1 })[2]];

const TWO = [paced(), ...joined(ANN, BOB), STARTED];
const ONCE = [paced({ rounds: { proposal: 1, debate: 1 } }), ...joined(ANN, BOB), STARTED];
const TO_DEBATE = [...TWO, pass(S, ANN), pass(S, BOB)];
const TO_COMMIT = [...TO_DEBATE, pass(S, ANN), pass(S, BOB)];

const LOBBY_AT = HOURS.lobby;
const END_OF = { lobby: HOURS.proposal, proposal: HOURS.debate, debate: HOURS.commit };
const WITH_DEADLINES = (changes: Partial<Created['deadlines']>) => ({
  deadlines: {
    lobbyDeadline: toTimestamp(HOURS.proposal),
    proposalDeadline: toTimestamp(HOURS.debate),
    debateDeadline: toTimestamp(HOURS.commit),
    allocateCommitDeadline: toTimestamp(HOURS.reveal),
    allocateRevealDeadline: toTimestamp(HOURS.end),
    ...changes,
  },
});

type Seen = readonly [at: number, phase: string, holder: string | null];

const ROWS: readonly (readonly [title: string, past: readonly BriefEvent[], ...seen: Seen[]])[] = [
  ['LOBBY ends when the creator starts', TWO, [S, 'PROPOSAL', ANN]],
  [
    'LOBBY continues until the chamber is full',
    [paced({ maxMembers: 3 }), ...joined(ANN, BOB)],
    [LOBBY_AT, 'LOBBY', null],
  ],
  ['LOBBY ends when the chamber is full', [paced({ maxMembers: 2 }), ...joined(ANN, BOB)], [LOBBY_AT, 'PROPOSAL', ANN]],
  [
    'LOBBY of a full chamber without rounds ends at its deadline',
    [created({ maxMembers: 2 }), ...joined(ANN, BOB)],
    [END_OF.lobby - 1, 'LOBBY', null],
    [END_OF.lobby, 'PROPOSAL', ANN],
  ],
  [
    'the last turn expires by the clock alone',
    ONCE,
    [S + TURN - 1, 'PROPOSAL', ANN],
    [S + TURN, 'PROPOSAL', BOB],
    [S + 2 * TURN - 1, 'PROPOSAL', BOB],
    [S + 2 * TURN, 'DEBATE', ANN],
    [S + 4 * TURN - 1, 'DEBATE', BOB],
    [S + 4 * TURN, 'ALLOCATE_COMMIT', null],
    [HOURS.reveal - 1, 'ALLOCATE_COMMIT', null],
  ],
  [
    'a pass completes the rounds even if the turns were not silent',
    [...ONCE, propose(S, ANN), pass(S + 1, ANN), propose(S + 2, BOB), pass(S + 3, BOB)],
    [S + 3, 'DEBATE', ANN],
    [S + 3 + TURN, 'DEBATE', BOB],
  ],
  [
    'a turn that expires after a pass completes the rounds',
    [...ONCE, propose(S, ANN), pass(S + 10, ANN)],
    [S + 10 + TURN - 1, 'PROPOSAL', BOB],
    [S + 10 + TURN, 'DEBATE', ANN],
  ],
  ['a silent round is not over before its last pass', [...TWO, pass(S + 1, ANN)], [S + 1, 'PROPOSAL', BOB]],
  ['a silent round ends PROPOSAL', [...TWO, pass(S + 1, ANN), pass(S + 2, BOB)], [S + 2, 'DEBATE', ANN]],
  ['a silent round of one phase does not count in the next', [...TO_DEBATE, pass(S, ANN)], [S, 'DEBATE', BOB]],
  [
    'a round with a comment is not silent',
    [...TO_DEBATE, pass(S, ANN), debate(S, BOB), pass(S + 1, BOB), pass(S + 2, ANN)],
    [S + 2, 'DEBATE', BOB],
  ],
  [
    'a silent round may begin with any member, after the last comment',
    [...TO_DEBATE, debate(S, ANN), pass(S + 1, ANN), pass(S + 2, BOB), pass(S + 3, ANN)],
    [S + 3, 'ALLOCATE_COMMIT', null],
  ],
  [
    'an expired turn is not silent',
    [...TWO, pass(S, ANN), pass(S + TURN, ANN)],
    [S + TURN, 'PROPOSAL', BOB],
    [S + 2 * TURN, 'PROPOSAL', ANN],
  ],
  [
    'two consecutive passes after an expired turn are a silent round',
    [...TWO, pass(S, ANN), pass(S + TURN, ANN), pass(S + TURN + 1, BOB)],
    [S + TURN + 1, 'DEBATE', ANN],
  ],
  [
    'at the instant at which a turn expires, the next member can pass',
    [...ONCE, pass(S + TURN, BOB)],
    [S + TURN, 'DEBATE', ANN],
  ],
  [
    'the deadline ends a phase and its turn before the rounds are complete',
    [paced({ rounds: { proposal: 100, debate: 100 }, turnSeconds: 70 }), ...joined(ANN, BOB), STARTED],
    [END_OF.proposal - 1, 'PROPOSAL', ANN],
    [END_OF.proposal, 'DEBATE', ANN],
    [END_OF.proposal + 70 * SECOND - 1, 'DEBATE', ANN],
    [END_OF.proposal + 70 * SECOND, 'DEBATE', BOB],
    [END_OF.debate - 1, 'DEBATE', BOB],
    [END_OF.debate, 'ALLOCATE_COMMIT', null],
  ],
  [
    'phases of a chamber without members end at their deadlines',
    [paced()],
    [HOURS.proposal - 1, 'LOBBY', null],
    [HOURS.proposal, 'PROPOSAL', null],
    [HOURS.debate - 1, 'PROPOSAL', null],
    [HOURS.debate, 'DEBATE', null],
    [HOURS.commit, 'ALLOCATE_COMMIT', null],
    [HOURS.reveal - 1, 'ALLOCATE_COMMIT', null],
    [HOURS.reveal, 'ALLOCATE_REVEAL', null],
  ],
  [
    'a silent pass of the only member ends the phase',
    [paced(), ...joined(ANN), STARTED, pass(S + 1, ANN)],
    [S + 1, 'DEBATE', ANN],
    [S + 1 + 3 * TURN - 1, 'DEBATE', ANN],
    [S + 1 + 3 * TURN, 'ALLOCATE_COMMIT', null],
  ],
  ['ALLOCATE_COMMIT waits for the last member', [...TO_COMMIT, commit(S, ANN)], [S, 'ALLOCATE_COMMIT', null]],
  [
    'ALLOCATE_COMMIT ends when every member has committed',
    [...TO_COMMIT, commit(S, ANN), commit(S + 1, BOB)],
    [S + 1, 'ALLOCATE_REVEAL', null],
  ],
  [
    'a skipped phase ends with the previous phase',
    [
      paced(WITH_DEADLINES({ debateDeadline: toTimestamp(HOURS.debate) })),
      ...joined(ANN, BOB),
      STARTED,
      pass(S + 1, ANN),
      pass(S + 2, BOB),
    ],
    [S + 2, 'ALLOCATE_COMMIT', null],
  ],
  [
    'a clock that is set back does not reopen a phase',
    [...TWO, pass(S + 1, ANN), pass(S + 2, BOB)],
    [S, 'DEBATE', ANN],
    [START, 'DEBATE', ANN],
    [0, 'DEBATE', ANN],
  ],
];

describe('the phase and the turn of a chamber with rounds', () => {
  it.each(ROWS.map(([title, past, ...seen]) => ({ title, past, seen })))('$title', ({ past, seen }) => {
    const state = fold(past);
    const seenOf = (of: ChamberState) => seen.map(([at]) => [at, phaseAt(of, at), turnHolderAt(of, at)]);
    expect(seenOf(state)).toEqual(seen);
    // Simulates a restart or an eviction between any two events.
    const restored = eventsOf(past).reduce<ChamberState | null>((before, event) => {
      return evolveChamber(before && decodeState(encodeState(before)), event as ChamberEvent);
    }, null);
    expect(seenOf(decodeState(encodeState(restored as ChamberState)))).toEqual(seen);
  });

  it.each<readonly [string, readonly BriefEvent[], readonly string[]]>([
    ['the join that fills the chamber', [paced({ maxMembers: 2 }), ...joined(ANN, BOB)], ['LOBBY', 'PROPOSAL']],
    ['the start', TWO, ['LOBBY', 'PROPOSAL']],
    ['the last pass of PROPOSAL', TO_DEBATE, ['PROPOSAL', 'DEBATE']],
    ['the last pass of DEBATE', TO_COMMIT, ['DEBATE', 'ALLOCATE_COMMIT']],
    ['the last commitment', [...TO_COMMIT, commit(S, ANN), commit(S, BOB)], ['ALLOCATE_COMMIT', 'ALLOCATE_REVEAL']],
  ])(
    '%s belongs to the phase that it ends; the next event in the same millisecond does not',
    (_title, past, phases) => {
      const events = eventsOf(past);
      const last = events.at(-1) as ChamberEvent;
      const state = fold(past);
      expect([phaseOf(state, last), phaseAt(state, Date.parse(last.ts))]).toEqual(phases);
      expect(phaseOf(state, { eventId: last.eventId + 1, ts: last.ts })).toBe(phases[1]);
    },
  );
});

describe('the end of the reveal in a chamber with rounds', () => {
  const bothCommitted = [...TO_COMMIT, commit(S, ANN), commit(S, BOB)];

  it.each<readonly [string, readonly BriefEvent[], number]>([
    ['the last reveal', [...bothCommitted, reveal(S + 1, BOB), reveal(S + 2, ANN)], S + 2],
    ['its deadline, while a reveal is missing', [...bothCommitted, reveal(S + 1, BOB)], HOURS.end],
    ['its start, if nobody committed', TO_COMMIT, HOURS.reveal],
    ['its deadline, without members', [paced()], HOURS.end],
    [
      'the only reveal, if only one member committed',
      [...TO_COMMIT, commit(S, BOB), reveal(HOURS.reveal, BOB)],
      HOURS.reveal,
    ],
  ])('the end of the reveal phase in a chamber with rounds is %s', (_title, past, closesAt) => {
    const state = fold(past);
    expect(state.ends.allocateRevealDeadline).toBe(closesAt);
    expect(isClosed(state, closesAt)).toBe(true);
    expect(state.lastAt === closesAt || !isClosed(state, closesAt - 1)).toBe(true);
  });
});

describe('the ends as known', () => {
  const { proposal, debate, commit: commitStart, reveal: revealStart, end } = HOURS;

  it.each<readonly [string, readonly BriefEvent[], number, readonly number[]]>([
    ['LOBBY: the deadlines', [paced(), ...joined(ANN, BOB)], START, [proposal, debate, commitStart, revealStart, end]],
    ['PROPOSAL: the ends that its turns imply', TWO, S, [S, S + 6 * TURN, S + 12 * TURN, revealStart, end]],
    [
      'PROPOSAL after a pass that shortened a turn',
      [...TWO, pass(S + 1, ANN)],
      S + 1,
      [S, S + 1 + 5 * TURN, S + 1 + 11 * TURN, revealStart, end],
    ],
    ['PROPOSAL after an expired turn', TWO, S + TURN, [S, S + 6 * TURN, S + 12 * TURN, revealStart, end]],
    ['DEBATE', TO_DEBATE, S, [S, S, S + 6 * TURN, revealStart, end]],
    ['ALLOCATE_COMMIT', TO_COMMIT, S, [S, S, S, revealStart, end]],
    ['nobody joined', [paced()], HOURS.reveal, [proposal, debate, commitStart, revealStart, end]],
    ['nobody committed', TO_COMMIT, HOURS.reveal, [S, S, S, revealStart, revealStart]],
    ['without rounds', [created(), ...joined(ANN)], debate, [proposal, debate, commitStart, revealStart, end]],
  ])('the ends known at a time: %s', (_title, past, at, ends) => {
    const known = knownEnds(fold(past), at);
    expect(DEADLINES.map((name) => known[name])).toEqual(ends);
  });
});
