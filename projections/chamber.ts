// Folds a chamber's events into its state, which is immutable and derived from the lines alone.
import { type ChamberEvent, isMove, type MoveEvent } from '../src/vocabulary/events.ts';
import { unreachable } from '../src/vocabulary/unreachable.ts';
import {
  type Allocation,
  DEADLINES,
  type DeadlineName,
  type Hex,
  instantOf,
  type Millis,
} from '../src/vocabulary/values.ts';
import type { AdmissionState } from './admission.ts';
import { amendedIdea, type Idea, ideaWithStance, proposedIdea, withIdea } from './ideas.ts';
import { endsAfter, endsAtCreation, type PaceState } from './phase-ends.ts';
import { evolveSettlement, NOT_SETTLED } from './settlement.ts';
import { afterPass, afterSpeech, NO_TURNS } from './turn.ts';

export interface Reveal {
  readonly allocations: readonly Allocation[];
  readonly salt: Hex;
}

/** Data of a member's account when it joined; null if the line of an earlier release lacks it. */
export interface Seat {
  readonly label: string | null;
  readonly wallet: string | null;
  readonly walletProven: boolean | null;
}

export interface ChamberState extends PaceState, AdmissionState {
  readonly name: string;
  readonly minBackersForGraduation: number;
  readonly topic: string | null;
  readonly seats: readonly Seat[];
  /** The ideas by slot, which starts at 1. */
  readonly ideas: readonly Idea[];
  /** The commitments by DID. */
  readonly commitments: ReadonlyMap<string, Hex>;
  readonly reveals: ReadonlyMap<string, Reveal>;
  /** The number of events that are leaves of the Merkle tree, which is the number of moves. */
  readonly moveCount: number;
}

/** The next state while an event is being folded into it. */
type Draft = { -readonly [Member in keyof ChamberState]: ChamberState[Member] };

/** Folds one event into the state; the state before `chamber.created` is null. */
export function evolveChamber(state: ChamberState | null, event: ChamberEvent): ChamberState {
  if (event.type === 'chamber.created') {
    if (state !== null) throw new Error(`chamber ${event.chamberId} is created twice`);
    return created(event);
  }
  if (state === null) throw new Error(`chamber ${event.chamberId} starts with ${event.type}`);
  const next = advance(state, event);
  switch (event.type) {
    case 'chamber.admitted':
      next.admission = { ...state.admission, dids: [...(state.admission?.dids ?? []), event.payload.did] };
      break;
    case 'chamber.joined': {
      const { label = null, walletAddress: wallet = null, walletProven = null } = event.payload;
      next.members = [...state.members, event.did];
      next.seats = [...state.seats, { label, wallet, walletProven }];
      break;
    }
    case 'chamber.started':
      break;
    case 'chamber.proposed':
      next.ideas = [...state.ideas, proposedIdea(event, versionOf(next))];
      next.turns = afterSpeech(state, next.lastAt);
      break;
    case 'chamber.debated': {
      const { ideaId, stance, version = 1 } = event.payload;
      const turnOrder = state.members.indexOf(event.did);
      if (stance !== undefined) {
        next.ideas = withIdea(state.ideas, ideaId, (idea) => ideaWithStance(idea, { turnOrder, stance, version }));
      }
      next.turns = afterSpeech(state, next.lastAt);
      break;
    }
    case 'chamber.amended': {
      const { ideaId } = event.payload;
      next.ideas = withIdea(state.ideas, ideaId, (idea) => amendedIdea(idea, event, versionOf(next)));
      next.turns = afterSpeech(state, next.lastAt);
      break;
    }
    case 'chamber.withdrawn':
      next.ideas = withIdea(state.ideas, event.payload.ideaId, (idea) => ({ ...idea, isWithdrawn: true }));
      next.turns = afterSpeech(state, next.lastAt);
      break;
    case 'chamber.passed':
      next.turns = afterPass(state, next.lastAt);
      break;
    case 'allocation.committed':
      next.commitments = new Map(state.commitments).set(event.did, event.payload.commitment);
      break;
    case 'allocation.revealed': {
      const { allocations, salt } = event.payload;
      next.reveals = new Map(state.reveals).set(event.did, { allocations, salt });
      break;
    }
    case 'relay.commit_submitted':
    case 'chamber.committed':
    case 'relay.deploy_submitted':
    case 'idea.deployed':
    case 'idea.deploy_failed':
      next.settlement = evolveSettlement(state.settlement, event);
      break;
    default:
      return unreachable(event);
  }
  const hasOwnPace = state.rounds !== null || state.minMembers !== null;
  return hasOwnPace ? Object.assign(next, endsAfter(state, next, event.type)) : next;
}

function versionOf({ lastEventId, lastAt }: Pick<ChamberState, 'lastEventId' | 'lastAt'>): Idea['versions'][number] {
  return { eventId: lastEventId, at: lastAt };
}

/** Lists the properties instead of spreading the state: this runs for every move, and spreading takes several times as long. */
function advance(state: ChamberState, event: ChamberEvent): Draft {
  return {
    chamberId: state.chamberId,
    name: state.name,
    creatorDid: state.creatorDid,
    deadlines: state.deadlines,
    ends: state.ends,
    endedBy: state.endedBy,
    minBackersForGraduation: state.minBackersForGraduation,
    topic: state.topic,
    admission: state.admission,
    tokenChain: state.tokenChain,
    maxMembers: state.maxMembers,
    minMembers: state.minMembers,
    turnSeconds: state.turnSeconds,
    rounds: state.rounds,
    movesPerTurn: state.movesPerTurn,
    members: state.members,
    seats: state.seats,
    ideas: state.ideas,
    turns: state.turns,
    commitments: state.commitments,
    reveals: state.reveals,
    settlement: state.settlement,
    moveCount: state.moveCount + (isMove(event) ? 1 : 0),
    lastEventId: event.eventId,
    lastAt: instantOf(event.ts),
  };
}

function created(event: Extract<MoveEvent, { type: 'chamber.created' }>): ChamberState {
  const { name, minBackersForGraduation, turnSeconds, topic = null } = event.payload;
  const { maxMembers = null, minMembers = null } = event.payload;
  const { rounds = null, movesPerTurn = null, admission = null, token = null } = event.payload;
  const millis = DEADLINES.map((deadline) => [deadline, instantOf(event.payload.deadlines[deadline])]);
  const deadlines = Object.fromEntries(millis) as Record<DeadlineName, Millis>;
  return {
    chamberId: event.chamberId,
    name,
    creatorDid: event.did,
    deadlines,
    ends: endsAtCreation(deadlines, minMembers),
    endedBy: {},
    minBackersForGraduation,
    topic,
    admission,
    tokenChain: token,
    maxMembers,
    minMembers,
    turnSeconds,
    rounds,
    movesPerTurn,
    members: [],
    seats: [],
    ideas: [],
    turns: NO_TURNS,
    commitments: new Map(),
    reveals: new Map(),
    settlement: NOT_SETTLED,
    moveCount: 1,
    lastEventId: event.eventId,
    lastAt: instantOf(event.ts),
  };
}
