// Hostile text to JSON values: what one reader might read differently from another is refused (README, Formats).
import { ForumError } from './errors.ts';
import type { JsonObject, JsonValue } from './values.ts';

/** Levels of nesting, of which the outermost object is the first. */
export const JSON_DEPTH_MAX = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Parses text as JSON. Malformed text, duplicate member names, nesting over 32 levels, non-finite numbers, integers
 * beyond ±(2^53 − 1) and lone surrogates throw FORUM_ERR_VALIDATION.
 */
export function parseJson(text: string): JsonValue {
  const shape = scan(text);
  if (shape.depth > JSON_DEPTH_MAX) throw refused(`nesting is deeper than ${JSON_DEPTH_MAX} levels`);
  const value = parse(text);
  const seen = { members: 0 };
  const problem = problemOf(value, seen);
  if (problem !== undefined) throw refused(`body${problem.path}: ${problem.text}`);
  if (seen.members !== shape.members) throw refused('an object holds the same member name twice');
  return value;
}

/** Counts members and nesting without recursion, so that no input is too deep to be looked at. */
function scan(text: string): { depth: number; members: number } {
  let depth = 0;
  let deepest = 0;
  let members = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case COLON:
        members++;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        if (depth > deepest) deepest = depth;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--;
        break;
    }
  }
  return { depth: deepest, members };
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw refused(`not valid JSON: ${error instanceof Error ? error.message : 'malformed'}`);
  }
}

interface Problem {
  readonly path: string;
  readonly text: string;
}

/** Counts the members it meets; a path is made only for what is wrong. */
function problemOf(value: JsonValue, seen: { members: number }): Problem | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : here('a lone surrogate is not Unicode');
  if (typeof value === 'number') return numberProblem(value);
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? itemProblem(value, seen) : memberProblem(value as JsonObject, seen);
}

function itemProblem(items: readonly JsonValue[], seen: { members: number }): Problem | undefined {
  for (let index = 0; index < items.length; index++) {
    const problem = problemOf(items[index] as JsonValue, seen);
    if (problem !== undefined) return { ...problem, path: `[${index}]${problem.path}` };
  }
  return undefined;
}

function memberProblem(value: JsonObject, seen: { members: number }): Problem | undefined {
  for (const name of Object.keys(value)) {
    if (!name.isWellFormed()) return here('a member name holds a lone surrogate');
    seen.members++;
    const problem = problemOf(value[name] as JsonValue, seen);
    if (problem !== undefined) return { ...problem, path: `.${name}${problem.path}` };
  }
  return undefined;
}

function numberProblem(value: number): Problem | undefined {
  if (!Number.isFinite(value)) return here('the number is not finite');
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return here('integers must lie within ±(2^53 − 1)');
  return undefined;
}

function here(text: string): Problem {
  return { path: '', text };
}

function refused(detail: string): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', detail);
}
