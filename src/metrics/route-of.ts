// The route of a raw request target, as metrics name it: ids are replaced, so that the number of names is bounded.

interface Crossing {
  readonly words: Map<string, Crossing>;
  parameter?: Crossing;
  route?: string;
}

export const OTHER = 'other';

/** Names targets by the patterns of the routes, e.g. `/chambers/:id/debate` for `/chambers/17/debate?x=1`. */
export function createRouteOf(patterns: Iterable<string>): (target: string) => string {
  const root = crossing();
  for (const pattern of patterns) add(root, pattern);
  return (target) => find(root, pathOf(target));
}

function crossing(): Crossing {
  return { words: new Map() };
}

function add(root: Crossing, pattern: string): void {
  let at = root;
  for (const part of pattern.split('/')) at = part.startsWith(':') ? parameterOf(at) : wordOf(at, part);
  at.route = pattern;
}

function parameterOf(at: Crossing): Crossing {
  at.parameter ??= crossing();
  return at.parameter;
}

function wordOf(at: Crossing, word: string): Crossing {
  const next = at.words.get(word) ?? crossing();
  at.words.set(word, next);
  return next;
}

function find(root: Crossing, path: string): string {
  let at: Crossing | undefined = root;
  for (const part of path.split('/')) at = at?.words.get(part) ?? at?.parameter;
  return at?.route ?? OTHER;
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}
