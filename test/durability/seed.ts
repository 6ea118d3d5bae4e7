// Randomness from a seed that is printed, so that a run can be repeated.
import { Random } from '../kit/random.ts';

/** The seed of the environment variable if it is set, otherwise a new one. */
export function seededBy(variable: string): Random {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${variable}=${seed}`);
  return new Random(seed);
}
