// Parses path and query parameters. Errors name the parameter.
import { invalid } from './errors.ts';
import { suggestion } from './suggestion.ts';
import { withCommas } from './values.ts';

/** Matches an id, which may still exceed the safe integers. */
export const ID = /^[1-9]\d{0,15}$/;
const NATURAL = /^(0|[1-9]\d{0,15})$/;

/** Parses a chamber or event id. Returns undefined for other text, for which the route responds "not found". */
export function parseId(text: string | undefined): number | undefined {
  const id = Number(text);
  return text !== undefined && ID.test(text) && Number.isSafeInteger(id) ? id : undefined;
}

/** Parses the event id after which to continue; undefined if absent. Throws FORUM_ERR_VALIDATION. */
export function parseCursor(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const cursor = Number(text);
  if (NATURAL.test(text) && Number.isSafeInteger(cursor)) return cursor;
  throw invalid(`${name}: must be an integer from 0 to ${withCommas(Number.MAX_SAFE_INTEGER)}`);
}

/** Rejects the cursor in the parameter or header `name` if it is beyond the last event, `head`. Throws FORUM_ERR_VALIDATION. */
export function requireWithin(name: string, after: number | undefined, head: number): void {
  if (after === undefined || after <= head) return;
  throw invalid(`${name}: ${after} is beyond the head of the log, which is ${head}`, { head });
}

/** Rejects unknown and repeated query parameters. Throws FORUM_ERR_VALIDATION. */
export function requireQuery(url: string, known: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of new URL(url).searchParams.keys()) {
    if (!known.includes(name)) {
      const hint = suggestion(name, known) ?? `known: ${known.join(', ')}`;
      throw invalid(`${name || 'query'}: unknown query parameter; ${hint}`);
    }
    if (seen.has(name)) throw invalid(`${name}: must not be given twice`);
    seen.add(name);
  }
}

/** Returns whether the parameter is present. Its only valid value is 1. Throws FORUM_ERR_VALIDATION. */
export function parseSwitch(name: string, text: string | undefined): boolean {
  if (text === undefined || text === '1') return text === '1';
  throw invalid(`${name}: must be 1`);
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** Parses an integer within bounds; undefined if absent. Throws FORUM_ERR_VALIDATION. */
export function parseInteger(name: string, text: string | undefined, { min, max }: Bounds): number | undefined {
  if (text === undefined) return undefined;
  const value = NATURAL.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalid(`${name}: must be an integer from ${min} to ${withCommas(max)}`);
}
