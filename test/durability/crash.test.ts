import { it } from 'vitest';
import { expectCrashesKeepMoves } from './crash-rounds.ts';

const MANY_BATCHES = 60;

it('a killed service keeps every accepted move', () => expectCrashesKeepMoves(1, [MANY_BATCHES]));
