// The JSON of rows of chambers and turns. Where a chamber is as in earlier releases, so is its row: it ends its phases at its
// deadlines only, and everybody may join.
import type { ChamberListing } from '../../projections/listings.ts';
import { NO_TURNS, type Turns } from '../../projections/phase.ts';

/** Earlier releases have written the name of the table. */
const TABLE = 'chambers';

type PacedMembers = Pick<ChamberListing, 'ends' | 'rounds' | 'movesPerTurn'>;

/** The rest of a listing, without what is as in earlier releases. */
type StoredChamber = Omit<ChamberListing, 'kind' | keyof PacedMembers | 'isRestricted'> &
  Partial<PacedMembers & Pick<ChamberListing, 'isRestricted'>>;

export function encodeChamber({ kind: _, isRestricted, ...listing }: ChamberListing): string {
  const { ends: _ends, rounds, movesPerTurn, ...plain } = listing;
  const members: StoredChamber = rounds === null && movesPerTurn === null ? plain : listing;
  return JSON.stringify({ table: TABLE, ...members, ...(isRestricted && { isRestricted }) });
}

/** Written out: a list decodes 200 of them, and spreading each would take several times as long. */
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
  const { phase, count: turnOrder, since } = turns;
  const plain: PlainTurns = { phase, turnOrder, since };
  return JSON.stringify(isPlain(turns) ? plain : turns);
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
