// The JSON columns of chambers, ideas and turns. A chamber that uses no later feature has the same row as in earlier releases. Properties are
// written in a fixed order, because their order in a state depends on its origin (command, line or snapshot), and a rebuild must produce the
// same bytes.
import type { ChamberListing } from '../../../projections/listings.ts';
import type { PhaseEnds } from '../../../projections/phase.ts';
import { NO_TURNS, type Turns } from '../../../projections/turn.ts';
import type { IdeaView } from '../../../projections/views.ts';
import { DEADLINES } from '../../vocabulary/values.ts';

/** Earlier releases wrote the table's name into the JSON. */
const TABLE = 'chambers';

type LaterChamberProperties = Pick<ChamberListing, 'ends' | 'rounds' | 'movesPerTurn' | 'isRestricted' | 'minMembers'>;

/** Omits later properties that have their default values. */
type StoredChamber = Omit<ChamberListing, 'kind' | keyof LaterChamberProperties> & Partial<LaterChamberProperties>;

export function encodeChamber(listing: ChamberListing): string {
  const { rounds, movesPerTurn, isRestricted, minMembers } = listing;
  const isPaced = rounds !== null || movesPerTurn !== null;
  const stored: StoredChamber = {
    chamberId: listing.chamberId,
    name: listing.name,
    creatorDid: listing.creatorDid,
    deadlines: inOrder(listing.deadlines),
    ...((isPaced || minMembers !== null) && { ends: inOrder(listing.ends) }),
    memberCount: listing.memberCount,
    turnSeconds: listing.turnSeconds,
    ...(isPaced && { rounds: rounds && { proposal: rounds.proposal, debate: rounds.debate }, movesPerTurn }),
    isCommitted: listing.isCommitted,
    isSettled: listing.isSettled,
    maxMembers: listing.maxMembers,
    ...(isRestricted && { isRestricted }),
    ...(minMembers !== null && { minMembers }),
  };
  return JSON.stringify({ table: TABLE, ...stored });
}

function inOrder(ends: PhaseEnds): PhaseEnds {
  return Object.fromEntries(DEADLINES.map((name) => [name, ends[name]])) as PhaseEnds;
}

/** Lists the properties explicitly, because a list decodes 200 chambers, and spreading each would take several times as long. */
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
    minMembers: stored.minMembers ?? null,
    isRestricted: stored.isRestricted ?? false,
    isCommitted: stored.isCommitted,
    isSettled: stored.isSettled,
  };
}

type LaterIdeaProperties = Pick<IdeaView, 'version' | 'withdrawn' | 'stances'>;

/** An idea that was not amended or withdrawn and has no stances is stored as in earlier releases. */
type StoredIdea = Omit<IdeaView, keyof LaterIdeaProperties> & Partial<LaterIdeaProperties>;

export function encodeIdea({ version, withdrawn, stances, ...idea }: IdeaView): string {
  const stored: StoredIdea = {
    ...idea,
    ...(version > 1 && { version }),
    ...(withdrawn && { withdrawn }),
    ...(Object.values(stances).some((count) => count > 0) && { stances }),
  };
  return JSON.stringify(stored);
}

/** Occurs only in the row of a withdrawn idea, because quotation marks within texts are escaped. */
export const WITHDRAWN_MARK = ',"withdrawn":true';

const NO_STANCES: IdeaView['stances'] = { for: 0, against: 0, undecided: 0, outdated: 0 };

export function decodeIdea(text: string): IdeaView {
  const { version = 1, withdrawn = false, stances = NO_STANCES, ...idea } = JSON.parse(text) as StoredIdea;
  return { ...idea, version, withdrawn, stances };
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

/** Whether the turns state only whose turn it is and since when. */
function isPlain({ silent, spoken, missed }: Turns): boolean {
  return silent === 0 && spoken === null && missed.length === 0;
}

export function decodeTurns(text: string): Turns {
  const turns = JSON.parse(text) as Turns | PlainTurns;
  if (!('turnOrder' in turns)) return { ...NO_TURNS, ...turns };
  return { ...NO_TURNS, phase: turns.phase, count: turns.turnOrder, since: turns.since };
}
