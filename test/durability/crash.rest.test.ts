// CRASH_ROUNDS sets the number of kills; 100 kills take about 10,000 moves.
import { it } from 'vitest';
import { expectCrashesKeepMoves, PLAYERS } from './crash-rounds.ts';

const { CRASH_ROUNDS = '5' } = process.env;
const ROUNDS = Number(CRASH_ROUNDS);
/** Kills while the first requests arrive, during the first commit, after a batch from every player, and after many batches. */
const KILL_AFTER_ANSWERS = [0, 1, PLAYERS, 30, 200];

it(`the service keeps every accepted move through ${ROUNDS} kills`, { timeout: 180_000 + ROUNDS * 10_000 }, () =>
  expectCrashesKeepMoves(ROUNDS, KILL_AFTER_ANSWERS),
);
