// Checks the shape of parsed JSON from another operator's service before use, so that errors name the members that are missing or have the
// wrong type. Unknown members are allowed, because later versions add members.
import { instantOf } from '../vocabulary/values.ts';

/** Returns a sentence about the problem, beginning with the member's path; undefined if the value is valid. */
export type Shape = (value: unknown, path: string) => string | undefined;

export const text = ofType('a string', (value) => typeof value === 'string');
export const integer = ofType('an integer', Number.isSafeInteger);
export const flag = ofType('a boolean', (value) => typeof value === 'boolean');
export const timestamp = ofType('a timestamp', (value) => typeof value === 'string' && !Number.isNaN(instantOf(value)));

export function oneOf(values: readonly string[]): Shape {
  return ofType(`one of ${values.join(', ')}`, (value) => values.includes(value as string));
}

export function nullable(shape: Shape): Shape {
  return (value, path) => (value === null ? undefined : shape(value, path));
}

export function optional(shape: Shape): Shape {
  return (value, path) => (value === undefined ? undefined : shape(value, path));
}

export function listOf(shape: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return problem(path, 'an array', value);
    for (const [index, item] of value.entries()) {
      const found = shape(item, `${path}[${index}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Accepts objects with at least these members. */
export function object<Value>(members: { readonly [Member in keyof Value]?: Shape }): Shape {
  const shapes = Object.entries<Shape>(members as Readonly<Record<string, Shape>>);
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return problem(path, 'an object', value);
    for (const [name, shape] of shapes) {
      const member = Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
      const found = shape(member, path === '' ? name : `${path}.${name}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

function ofType(expected: string, matches: (value: unknown) => boolean): Shape {
  return (value, path) => (matches(value) ? undefined : problem(path, expected, value));
}

function problem(path: string, expected: string, value: unknown): string {
  const subject = path === '' ? 'it' : path;
  return value === undefined ? `${subject} is missing` : `${subject} is not ${expected}`;
}
