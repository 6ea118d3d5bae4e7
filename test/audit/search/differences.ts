// Compares a forged history with the honest one, line by line.
import { leaves, type Path } from '../alter.ts';
import type { Json, Line } from '../forge.ts';
import type { Draft, Entry } from './draft.ts';

interface Common {
  /** The account's agent; undefined for the chamber. */
  readonly did: string | undefined;
  /** The original line, or the inserted one. */
  readonly line: Line;
}

export type Difference = Common &
  (
    | { readonly kind: 'omitted' | 'moved' }
    | { readonly kind: 'inserted'; readonly place: number }
    | { readonly kind: 'changed'; readonly path: string; readonly now: Line }
  );

export function differencesOf(draft: Draft): readonly Difference[] {
  const { lines, accounts } = draft.history;
  const ofAccounts = [...(accounts ?? [])].flatMap(([did, own]) =>
    compare(draft, own, draft.accounts.get(did) ?? [], did),
  );
  return [...compare(draft, lines, draft.lines, undefined), ...ofAccounts];
}

function compare(
  draft: Draft,
  honest: readonly Line[],
  entries: readonly Entry[],
  did?: string,
): readonly Difference[] {
  const found: Difference[] = [];
  const matched = new Set<Line>();
  let last = -1;
  for (const [place, { line, origin: known }] of entries.entries()) {
    // An inserted line may equal an original one.
    const origin = known ?? honest.find((each) => !matched.has(each) && textOf(each) === textOf(line));
    // A line belongs to the account that it names.
    const owner = did === undefined ? undefined : String(line['did']);
    // A line of another type is a different line.
    if (origin === undefined || matched.has(origin) || owner !== did || origin['type'] !== line['type']) {
      found.push({ kind: 'inserted', did: owner, line, place });
      continue;
    }
    matched.add(origin);
    const index = honest.indexOf(origin);
    if (index < last) found.push({ kind: 'moved', did, line: origin });
    last = Math.max(last, index);
    for (const path of differing(origin, line)) {
      const isFirst = path === 'prev' && place === 0 && Number(origin['eventId']) > 1;
      if (isFirst || !isCorrected(draft, line, path))
        found.push({ kind: 'changed', did, line: origin, now: line, path });
    }
  }
  for (const line of honest) if (!matched.has(line)) found.push({ kind: 'omitted', did, line });
  return found;
}

function textOf({ eventId: _, prev: __, ...rest }: Line): string {
  return JSON.stringify(rest);
}

/** Returns whether the value was replaced by a correct hash or the correct commitment. */
function isCorrected({ isRechained, isRecommitted }: Draft, { type }: Line, path: string): boolean {
  if (isRechained && (path === 'eventId' || path === 'prev')) return true;
  if (!isRecommitted) return false;
  return type === 'relay.commit_submitted'
    ? path.startsWith('payload.')
    : type === 'chamber.committed' && /^payload\.(merkleRoot|eventCount|txHash)/.test(path);
}

/** Returns the paths of values that differ or that only one line has. */
function differing(before: Line, after: Line): readonly string[] {
  const paths = new Map([...leaves(before), ...leaves(after)].map((path) => [path.join('.'), path]));
  return [...paths].filter(([, path]) => textAt(before, path) !== textAt(after, path)).map(([name]) => name);
}

function textAt(value: Json | undefined, [name, ...rest]: Path): string | undefined {
  if (name === undefined) return JSON.stringify(value);
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return textAt((value as Line)[name], rest);
}
