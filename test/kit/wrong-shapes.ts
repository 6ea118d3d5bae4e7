// Generates every variant of a JSON value in which one member is missing or has another type.

export interface WrongShape {
  /** The path of the member as in error texts; empty for the whole value. */
  readonly path: string;
  readonly value: unknown;
}

const WRONG: readonly unknown[] = [null, 1.5, 'wrong', {}, [null]];

/** Returns variants of the value, each with one member removed or replaced. */
export function* wrongShapes(value: unknown, path = ''): Generator<WrongShape> {
  for (const wrong of WRONG) yield { path, value: wrong };
  if (typeof value !== 'object' || value === null) return;
  const isList = Array.isArray(value);
  for (const [name, member] of Object.entries(value)) {
    const memberPath = isList ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    if (!isList) yield { path: memberPath, value: { ...value, [name]: undefined } };
    for (const wrong of wrongShapes(member, memberPath)) {
      const changed = isList ? value.with(Number(name), wrong.value) : { ...value, [name]: wrong.value };
      yield { path: wrong.path, value: changed };
    }
  }
}
