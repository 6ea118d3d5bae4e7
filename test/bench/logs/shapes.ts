// The logs that the benches read.
import { type Options, scaled } from '../options.ts';
import type { LogSpec } from './stored-log.ts';

export const SHORT_CHAMBER = 1;
export const LONG_CHAMBER = 2;

/** One of 100 events and one of 100,000. */
export function twoChambers(options: Options): LogSpec {
  return { name: 'two-chambers', chambers: [100, scaled(100_000, options)] };
}
