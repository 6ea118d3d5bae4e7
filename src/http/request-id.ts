// Ids that tie an answer to what the service logged about its request. Made when asked for: most requests need none.
import { randomBytes } from 'node:crypto';

const PROCESS = randomBytes(6).toString('base64url');
const ids = new WeakMap<object, string>();
let count = 0;

/** The same id for the same request. */
export function requestIdOf(request: object): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const id = `${PROCESS}-${(++count).toString(36)}`;
  ids.set(request, id);
  return id;
}
