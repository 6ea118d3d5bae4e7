// The JSON of rows of chambers and turns. Where a chamber is as in earlier releases, so is its row: it ends its phases at its
// deadlines only, and everybody may join. Members are written in a fixed order: a state that comes from a command, a line or a snapshot
// has its own, and a rebuild must make the same bytes.
import type { ChamberListing } from '../../../projections/listings.ts';
import type { PhaseEnds } from '../../../projections/phase.ts';
import { NO_TURNS, type Turns } from '../../../projections/turn.ts';
import { DEADLINES } from '../../vocabulary/values.ts';

/** Earlier releases have written the name of the table. */
const TABLE = 'chambers';

type PacedMembers = Pick<ChamberListing, 'ends' | 'rounds' | 'movesPerTurn'>;

/** The rest of a listing, without what is as in earlier releases. */
type StoredChamber = Omit<ChamberListing, 'kind' | keyof PacedMembers | 'isRestricted'> &
  Partial<PacedMembers & Pick<ChamberListing, 'isRestricted'>>;

export function encodeChamber(listing: ChamberListing): string {
  const { rounds, movesPerTurn, isRestricted } = listing;
  const isPaced = rounds !== null || movesPerTurn !== null;
  const stored: StoredChamber = {
    chamberId: listing.chamberId,
    name: listing.name,
    creatorDid: listing.creatorDid,
    deadlines: inOrder(listing.deadlines),
    ...(isPaced && { ends: inOrder(listing.ends) }),
    memberCount: listing.memberCount,
    turnSeconds: listing.turnSeconds,
    ...(isPaced && { rounds: rounds && { proposal: rounds.proposal, debate: rounds.debate }, movesPerTurn }),
    isCommitted: listing.isCommitted,
    isSettled: listing.isSettled,
    maxMembers: listing.maxMembers,
    ...(isRestricted && { isRestricted }),
  };
  return JSON.stringify({ table: TABLE, ...stored });
}

function inOrder(ends: PhaseEnds): PhaseEnds {
  return Object.fromEntries(DEADLINES.map((name) => [name, ends[name]])) as PhaseEnds;
}

/** The members are written out: a list decodes 200 of them, and spreading each would take several times as long. */
export function decodeChamber(text: string): ChamberListing {
  const stored = JSON.parse(text) as StoredChamber;
  return {
    kind: 'chamber',
    chamberId: stored.chamberId,
    name: stored.name,
    creatorDid: stored.creatorDid,
    deadlines: stored.deadlines,
    ends: stored.ends ?? stored.deadlines,
    memberCount: stored.memberCount,
    turnSeconds: stored.turnSeconds,
    rounds: stored.rounds ?? null,
    movesPerTurn: stored.movesPerTurn ?? null,
    maxMembers: stored.maxMembers,
    isRestricted: stored.isRestricted ?? false,
    isCommitted: stored.isCommitted,
    isSettled: stored.isSettled,
  };
}

interface PlainTurns extends Pick<Turns, 'phase' | 'since'> {
  readonly turnOrder: number;
}

export function encodeTurns(turns: Turns): string {
  const { phase, count, since, silent, spoken, missed } = turns;
  const plain: PlainTurns = { phase, turnOrder: count, since };
  const whole: Turns = {
    ...{ phase, count, since, silent, missed },
    spoken: spoken && { turn: spoken.turn, moves: spoken.moves },
  };
  return JSON.stringify(isPlain(turns) ? plain : whole);
}

/** Whether the turns say no more than whose turn it is since when. */
function isPlain({ silent, spoken, missed }: Turns): boolean {
  return silent === 0 && spoken === null && missed.length === 0;
}

export function decodeTurns(text: string): Turns {
  const turns = JSON.parse(text) as Turns | PlainTurns;
  if (!('turnOrder' in turns)) return { ...NO_TURNS, ...turns };
  return { ...NO_TURNS, phase: turns.phase, count: turns.turnOrder, since: turns.since };
}
