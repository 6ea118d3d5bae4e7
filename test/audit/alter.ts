// Enumerates the values of a record and changes one.
import type { Json, Line } from './forge.ts';

export type Path = readonly string[];

export function leaves(value: Json, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, member]) => leaves(member, [...path, name]));
}

export function changed(value: Json, path: Path, change: (value: Json) => Json): Json {
  const [name, ...rest] = path;
  if (name === undefined) return change(value);
  const copy = structuredClone(value) as Line;
  copy[name] = changed(copy[name] as Json, rest, change);
  return copy;
}

/** Returns a slightly different value of the same type. */
export function similarValue(value: Json): Json {
  if (typeof value === 'number') return value + 1;
  if (value === null) return 'null';
  const text = String(value);
  const at = text.length >> 1;
  return text.slice(0, at) + (text[at] === '1' ? '2' : '1') + text.slice(at + 1);
}
