/** Ends an exhaustive switch: the compiler rejects unhandled cases, and a call at run time is a bug. */
export function unreachable(value: never): never {
  throw new Error(`unhandled case ${JSON.stringify(value)}`);
}
