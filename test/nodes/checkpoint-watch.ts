// Polls the checkpoint of every node during a scenario: across all nodes, sizes never shrink, and at the end each checkpoint has
// the root of the first lines of one log.
import { setTimeout as sleep } from 'node:timers/promises';
import { PublishedLog } from '../../src/mirror/published-log.ts';
import { parseVerifierKey } from '../../src/tlog/note.ts';
import { openCheckpoint } from '../../src/tlog/proof.ts';
import { tileAt, tilePath } from '../../src/tlog/tile.ts';
import { type ReadTiles, rootOfTiles } from '../../src/tlog/tiled-tree.ts';

const PAUSE_MS = 50;

/** Returns the URL of a node, or undefined while the node is not polled. */
export type Asked = () => string | undefined;

export interface CheckpointWatch {
  /** The number of checkpoints of different sizes. */
  readonly count: () => number;
  /** The size of the largest checkpoint. */
  readonly largest: () => number;
  readonly stop: () => Promise<void>;
  /** Returns the problems of checkpoints that do not belong to one growing log. */
  readonly forks: () => Promise<readonly string[]>;
}

export async function watchCheckpoints(nodes: readonly Asked[]): Promise<CheckpointWatch> {
  const url = () => nodes.map((node) => node()).find((each) => each !== undefined) ?? '';
  const { prefix, checkpointKey } = await new PublishedLog(url()).name();
  const key = parseVerifierKey(checkpointKey);
  if (key === undefined) throw new Error(`no verifier key: ${checkpointKey}`);
  const roots = new Map<number, Uint8Array>();
  const problems: string[] = [];
  let [isOver, largest] = [false, 0];

  const take = (text: string, sizeMin: number) => {
    const checkpoint = openCheckpoint(text, key);
    if (checkpoint === undefined) return void problems.push(`not a checkpoint of the log: ${text}`);
    const { size, root } = checkpoint;
    if (size < sizeMin) problems.push(`a checkpoint of ${size} lines was served after one of ${sizeMin}`);
    if (Buffer.compare(roots.get(size) ?? root, root) !== 0) problems.push(`${size} lines have two roots`);
    largest = Math.max(largest, size);
    roots.set(size, root);
  };
  // Each node has its own loop, because a request to a frozen node waits until the node wakes.
  const loops = nodes.map(async (node) => {
    for (; !isOver; await sleep(PAUSE_MS)) {
      const asked = node();
      if (asked === undefined) continue;
      const before = largest;
      const text = await new PublishedLog(asked).checkpoint(prefix).catch(() => undefined);
      if (text !== undefined) take(text, before);
    }
  });

  return {
    count: () => roots.size,
    largest: () => largest,
    stop: async () => {
      isOver = true;
      await Promise.all(loops);
    },
    forks: async () => {
      const log = new PublishedLog(url());
      take(await log.checkpoint(prefix), largest);
      const tiles = new Map<string, Promise<Uint8Array>>();
      const readTiles: ReadTiles = (refs) =>
        Promise.all(
          refs.map((ref) => {
            const tile = tileAt(ref, largest);
            if (tile === undefined) return undefined;
            const read = tiles.get(tilePath(tile)) ?? log.tile(prefix, tile);
            tiles.set(tilePath(tile), read);
            return read;
          }),
        );
      for (const [size, root] of roots) {
        if (Buffer.compare(await rootOfTiles(size, readTiles), root) === 0) continue;
        problems.push(`the checkpoint of ${size} lines does not match the log with ${largest} lines`);
      }
      return problems;
    },
  };
}
