// Seeds for random tests, which are printed so that a run can be repeated.
import { Random } from '../kit/random.ts';

/** Returns the seed of the environment variable, or a new one if it is not set. */
export function seededBy(variable: string): Random {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${variable}=${seed}`);
  return new Random(seed);
}
