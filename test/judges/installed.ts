// The programs that `npm run judges` has installed.
import { join } from 'node:path';

/** undefined in every other run of the tests. */
export const { JUDGES } = process.env;

/** The words that start one of them. It runs on the Node of the tests, which is not the one that its first line would find. */
export function judge(program: 'conformance' | 'prism' | 'spectral'): readonly [string, string] {
  return [process.execPath, join(judgesFolder(), 'node_modules/.bin', program)];
}

export function judgesFolder(): string {
  if (JUDGES === undefined) throw new Error('start with `npm run judges`');
  return JUDGES;
}
