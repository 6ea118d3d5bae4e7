// How rows of chambers and turns are stored: those of chambers that end phases at their deadlines only look as in earlier releases.
import type { ChamberListing } from '../../projections/listings.ts';
import { NO_TURNS, type Turns } from '../../projections/phase.ts';

type Pace = Pick<ChamberListing, 'rounds' | 'movesPerTurn'>;

const NO_PACE: Pace = { rounds: null, movesPerTurn: null };

export function isPaced({ rounds, movesPerTurn }: Pace): boolean {
  return rounds !== null || movesPerTurn !== null;
}

export function encodeChamber(listing: ChamberListing): string {
  if (isPaced(listing)) return JSON.stringify(listing);
  const { ends: _, rounds: _rounds, movesPerTurn: _moves, ...plain } = listing;
  return JSON.stringify(plain);
}

export function decodeChamber(text: string): ChamberListing {
  const listing = JSON.parse(text) as ChamberListing;
  return { ...NO_PACE, ...listing, ends: listing.ends ?? listing.deadlines };
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
export function isPlain({ silent, spoken, missed }: Turns): boolean {
  return silent === 0 && spoken === null && missed.length === 0;
}

export function decodeTurns(text: string): Turns {
  const turns = JSON.parse(text) as Turns | PlainTurns;
  if (!('turnOrder' in turns)) return { ...NO_TURNS, ...turns };
  return { ...NO_TURNS, phase: turns.phase, count: turns.turnOrder, since: turns.since };
}
