// Chance from a seed that is printed, so that a run can be had again.
import { Random } from '../kit/random.ts';

/** The seed of the environment variable where it is set, else a new one. */
export function seededBy(variable: string): Random {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${variable}=${seed}`);
  return new Random(seed);
}
