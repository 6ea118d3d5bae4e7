// Path and query parameters: text from the URL to values, or a refusal that names the parameter.
import { ForumError } from './errors.ts';

const POSITIVE = /^[1-9]\d{0,15}$/;
const NATURAL = /^(0|[1-9]\d{0,15})$/;

/** A chamber or event id; undefined for text that no id can have, which is then simply not found. */
export function parseId(text: string | undefined): number | undefined {
  return text !== undefined && POSITIVE.test(text) ? safe(Number(text)) : undefined;
}

/** An event id to continue after; undefined when absent. Throws FORUM_ERR_VALIDATION. */
export function parseCursor(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const cursor = NATURAL.test(text) ? safe(Number(text)) : undefined;
  if (cursor === undefined) throw invalid(name, 'must be a non-negative integer');
  return cursor;
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** An integer within bounds; undefined when absent. Throws FORUM_ERR_VALIDATION. */
export function parseInteger(name: string, text: string | undefined, { min, max }: Bounds): number | undefined {
  if (text === undefined) return undefined;
  const value = NATURAL.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalid(name, `must be an integer from ${min} to ${max.toLocaleString('en')}`);
}

export function invalid(name: string, problem: string): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', `${name}: ${problem}`);
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined;
}
