// Questions to a chain: several at a time, because each waits for the network.

const AT_ONCE_MAX = 8;

/** Does the work for every item, for a few of them at a time; rejects with the first error. */
export async function forEachAtOnce<Item>(items: Iterable<Item>, work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const workOn = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, workOn));
}
