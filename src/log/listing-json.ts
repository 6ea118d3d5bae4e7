// The JSON of rows of chambers and turns. Where a chamber is as in earlier releases, so is its row: it ends its phases at its
// deadlines only, and everybody may join.
import type { ChamberListing } from '../../projections/listings.ts';
import { NO_TURNS, type Turns } from '../../projections/phase.ts';

const PLAIN = { rounds: null, movesPerTurn: null, isRestricted: false } as const satisfies Partial<ChamberListing>;

export function encodeChamber({ kind: _, isRestricted, ...listing }: ChamberListing): string {
  const { ends: _ends, rounds, movesPerTurn, ...plain } = listing;
  const members = rounds === null && movesPerTurn === null ? plain : listing;
  // Earlier releases have written the name of the table.
  return JSON.stringify({ table: 'chambers', ...members, ...(isRestricted && { isRestricted }) });
}

export function decodeChamber(text: string): ChamberListing {
  const { table: _, ...listing } = JSON.parse(text) as ChamberListing & { readonly table: string };
  return { ...PLAIN, ...listing, kind: 'chamber', ends: listing.ends ?? listing.deadlines };
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
