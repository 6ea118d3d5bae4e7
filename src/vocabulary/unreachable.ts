/** Where a switch knows every case: the compiler makes sure of it, and whatever gets here all the same is a defect. */
export function unreachable(value: never): never {
  throw new Error(`nothing is known of ${JSON.stringify(value)}`);
}
