/** Ends a switch that handles every case: the compiler checks it, and a value that arrives here is a defect. */
export function unreachable(value: never): never {
  throw new Error(`unhandled case ${JSON.stringify(value)}`);
}
