// The logs that the benches read.
import { type Options, scaled } from '../options.ts';
import type { LogSpec } from './stored-log.ts';

export const SHORT_CHAMBER = 1;
export const LONG_CHAMBER = 2;

/** Chambers of 100 and 100,000 events. */
export function twoChambers(options: Options): LogSpec {
  return { name: 'two-chambers', chambers: [100, scaled(100_000, options)] };
}

export const COLD_CHAMBER = 1;
const CHAMBERS = 20_000;
const EVENTS = 1_000_000;
const COLD_EVENTS = 10_000;

/** A million events in 20,000 chambers, one of which has 10,000 events. */
export function manyChambers(options: Options): LogSpec {
  const chambers = scaled(CHAMBERS, options);
  const cold = scaled(COLD_EVENTS, options);
  const rest = scaled(EVENTS, options) - cold;
  const others = chambers - 1;
  const larger = rest % others;
  const sizes = Array.from({ length: others }, (_, index) => Math.floor(rest / others) + (index < larger ? 1 : 0));
  return { name: 'many-chambers', chambers: [cold, ...sizes] };
}

/** Small chambers in which consumers wait. */
export const QUIET: LogSpec = { name: 'quiet', chambers: new Array<number>(100).fill(10) };

/** The log of an unused service. */
export const EMPTY: LogSpec = { name: 'empty', chambers: [] };
