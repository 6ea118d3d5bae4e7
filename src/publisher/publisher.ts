// Publishes checkpoints: once a second at most, over the lines that are on disk, by one node at a time. Its invariants:
//
// 1. The position of a line never changes, so the tree of any size is the same at any time, on any node.
// 2. Tiles and checkpoint are written in one transaction, which does nothing unless the stored checkpoint is the one that the new one
//    extends. So sizes only rise, no two notes contradict each other, and a publisher that wakes late publishes nothing.
// 3. Nothing is kept in memory between two checkpoints. Each begins with the stored tiles, whose root must be that of the stored note: a
//    store that was changed behind the service's back is noticed before the next note is signed.
import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { PublishedTree, StoredCheckpoint } from '../log/published-tree.ts';
import type { Lease } from '../log/store.ts';
import { formatCheckpoint, parseCheckpoint } from '../tlog/checkpoint.ts';
import { formatNote, parseNote } from '../tlog/note.ts';
import { type GrowingTree, openGrowingTree } from '../tlog/tiled-tree.ts';
import { HASH_BYTES, treeHash } from '../tlog/tree.ts';
import type { CheckpointSigner } from './signer.ts';

export const PUBLISH_INTERVAL_MS = 1_000;
/** Read and hashed in one turn of the event loop, which takes some milliseconds. */
const LEAVES_AT_ONCE = 1_024;
/** A log that is behind, after a migration for example, catches up in steps of this size, each of them a transaction. */
export const LEAVES_PER_CHECKPOINT_MAX = 32_768;

/** By node:crypto: several times as fast as plain JavaScript for the few bytes of a node. */
const TREE = treeHash((data) => hash('sha256', data, 'buffer'));

/** The stored tiles are not those of the stored checkpoint: nothing is signed before an operator has looked. */
export class TreeDamaged extends Error {}

export interface PublisherOptions {
  readonly tree: PublishedTree;
  readonly lease: Lease;
  readonly signer: () => Promise<CheckpointSigner>;
}

/** Publishes a checkpoint over all lines, or over as many as one may add; undefined if there is nothing new or another node publishes. */
export async function publishOnce({ tree, lease, signer }: PublisherOptions): Promise<StoredCheckpoint | undefined> {
  const token = lease.token;
  if (token === undefined) return undefined;
  const before = await tree.checkpoint();
  const from = before?.size ?? 0;
  const growing = await openStoredTree(tree, before);
  await grow(growing, tree, from + LEAVES_PER_CHECKPOINT_MAX);
  if (growing.size === from) return undefined;
  const { origin, sign } = await signer();
  const text = formatCheckpoint({ origin, size: growing.size, root: growing.root() });
  const checkpoint = { size: growing.size, note: formatNote({ text, signatures: [sign(text)] }) };
  const isPublished = await tree.publish({ from, checkpoint, tiles: growing.changedTiles(), lease: token });
  return isPublished ? checkpoint : undefined;
}

/** The tree under the stored checkpoint, ready to grow. Throws TreeDamaged if its tiles have another root. */
export async function openStoredTree(tree: PublishedTree, stored: StoredCheckpoint | undefined): Promise<GrowingTree> {
  const growing = await openGrowingTree(stored?.size ?? 0, tree.readTiles, TREE).catch((error: unknown) => {
    throw error instanceof RangeError ? new TreeDamaged(error.message, { cause: error }) : error;
  });
  const note = stored && parseNote(stored.note);
  const checkpoint = note && parseCheckpoint(note.text);
  if (stored === undefined) return growing;
  const isSame = checkpoint?.size === stored.size && Buffer.compare(checkpoint.root, growing.root()) === 0;
  if (!isSame) throw new TreeDamaged(`the tiles have not the root of the checkpoint of size ${stored.size}`);
  return growing;
}

/** Adds the leaves of the log up to `sizeMax`, or up to its end. */
export async function grow(growing: GrowingTree, tree: PublishedTree, sizeMax: number): Promise<void> {
  while (growing.size < sizeMax) {
    const wanted = Math.min(LEAVES_AT_ONCE, sizeMax - growing.size);
    const leaves = await tree.readLeaves(growing.size, wanted);
    for (let at = 0; at < leaves.length; at += HASH_BYTES) growing.add(leaves.subarray(at, at + HASH_BYTES));
    if (leaves.length < wanted * HASH_BYTES) return;
    await setImmediate();
  }
}
