// Randomness that a printed seed brings back.

export interface Random {
  readonly seed: number;
  /** An integer from min to max, both included. */
  integer(min: number, max: number): number;
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
}

/** The seed of the environment variable where it is set, else a new one; printed either way. */
export function randomFrom(variable: string): Random {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${variable}=${seed}`);
  let state = seed >>> 0;
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return { seed, integer, pick: (items) => items[integer(0, items.length - 1)] ?? items[0] };
}
