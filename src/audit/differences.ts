// In which members two objects differ, in words.
import { canonicalJson } from '../vocabulary/canonical-json.ts';

/** One text for each member of `expected`, and with `isExact` of `actual` too, that differs; an absent member counts as null. */
export function differences(
  expected: object,
  actual: object,
  { isExact }: { readonly isExact: boolean },
): readonly string[] {
  const names = new Set([...Object.keys(expected), ...(isExact ? Object.keys(actual) : [])]);
  return [...names]
    .filter((name) => canonicalJson(memberOf(expected, name)) !== canonicalJson(memberOf(actual, name)))
    .map((name) => `${name} is ${excerpt(memberOf(actual, name))} and not ${excerpt(memberOf(expected, name))}`);
}

function memberOf(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : null;
}

const EXCERPT_CHARS = 80;

function excerpt(value: unknown): string {
  const text = canonicalJson(value);
  return text.length > EXCERPT_CHARS ? `${text.slice(0, EXCERPT_CHARS)}…` : text;
}
