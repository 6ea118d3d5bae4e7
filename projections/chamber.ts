// A chamber's state as a fold of its events: immutable, and derived from the lines alone.
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
import { endsAfter, type PaceState } from './phase-ends.ts';
import { evolveSettlement, NOT_SETTLED } from './settlement.ts';
import { afterPass, afterSpeech, NO_TURNS } from './turn.ts';

export interface Idea {
  readonly ideaId: string;
  readonly slot: number;
  readonly ticker: string;
  readonly name: string;
  readonly description: string;
  readonly creatorDid: string;
  readonly creatorWallet: string;
  readonly proposedAt: Millis;
}

export interface Reveal {
  readonly allocations: readonly Allocation[];
  readonly salt: Hex;
}

/** What a member's account said when it joined; null where a line of an earlier release does not say it. */
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
  /** Commitment by DID. */
  readonly commitments: ReadonlyMap<string, Hex>;
  readonly reveals: ReadonlyMap<string, Reveal>;
  /** How many events are leaves of the Merkle tree: the chamber's moves. */
  readonly moveCount: number;
}

/** The next state while an event is folded into it. */
type Draft = { -readonly [Member in keyof ChamberState]: ChamberState[Member] };

/** Folds one event into the state; null is the state before `chamber.created`. */
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
    case 'chamber.proposed': {
      const { accountEventId: _, ...idea } = event.payload;
      next.ideas = [...state.ideas, { ...idea, creatorDid: event.did, proposedAt: next.lastAt }];
      next.turns = afterSpeech(state, next.lastAt);
      break;
    }
    case 'chamber.debated':
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
  return state.rounds === null ? next : Object.assign(next, endsAfter(state, next, event.type));
}

/** The members are written out instead of spread: this runs for every move, and is several times faster. */
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
  const { name, minBackersForGraduation, turnSeconds, topic = null, maxMembers = null } = event.payload;
  const { rounds = null, movesPerTurn = null, admission = null, token = null } = event.payload;
  const millis = DEADLINES.map((deadline) => [deadline, instantOf(event.payload.deadlines[deadline])]);
  const deadlines = Object.fromEntries(millis) as Record<DeadlineName, Millis>;
  return {
    chamberId: event.chamberId,
    name,
    creatorDid: event.did,
    deadlines,
    ends: deadlines,
    endedBy: {},
    minBackersForGraduation,
    topic,
    admission,
    tokenChain: token,
    maxMembers,
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
