// Publishes checkpoints over the durable lines, at most once a second, one node at a time. Invariants:
//
// 1. The position of a line never changes, so every node computes the same tree of a given size, at any time.
// 2. Tiles and checkpoint are written in one transaction, which fails unless the new checkpoint extends the stored one. So sizes only grow,
//    no two notes contradict each other, and a publisher that resumes late publishes nothing.
// 3. No state is kept in memory between checkpoints. Each round starts from the stored tiles, whose root must match the stored note, so a
//    changed store is detected before the next note is signed.
import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { signWith } from '../keys/private-key.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import type { PublishedTree, StoredCheckpoint } from '../log/published-tree.ts';
import type { Lease } from '../log/store.ts';
import { formatCheckpoint, parseCheckpoint } from '../tlog/checkpoint.ts';
import {
  formatNote,
  NOTE_KEY_TYPES,
  type NoteKey,
  type NoteSignature,
  parseNote,
  signNote,
  toNoteKey,
} from '../tlog/note.ts';
import { type GrowingTree, openGrowingTree } from '../tlog/tiled-tree.ts';
import { HASH_BYTES, treeHash } from '../tlog/tree.ts';

export const PUBLISH_INTERVAL_MS = 1_000;
/** Leaves hashed in one turn of the event loop, which takes a few milliseconds. */
const LEAVES_PER_BATCH = 1_024;
/** Bounds the transaction of a checkpoint while a log catches up, for example after a migration. */
export const LEAVES_PER_CHECKPOINT_MAX = 32_768;

/** Uses node:crypto, which is several times as fast as plain JavaScript here. */
const TREE = treeHash((data) => hash('sha256', data, 'buffer'));

/** The stored tiles do not match the stored checkpoint. Nothing is signed until an operator has repaired them. */
export class TreeDamaged extends Error {}

export interface CheckpointSigner {
  readonly origin: string;
  readonly sign: (text: string) => NoteSignature;
}

export function checkpointSigner(origin: string, key: Pick<ServiceKey, 'seed' | 'publicKey'>): CheckpointSigner {
  const noteKey = checkpointKey(origin, key);
  const sign = signWith(key.seed);
  return { origin, sign: (text) => signNote(text, noteKey, sign) };
}

export function checkpointKey(origin: string, { publicKey }: Pick<ServiceKey, 'publicKey'>): NoteKey {
  return toNoteKey(origin, NOTE_KEY_TYPES.ed25519, publicKey);
}

export interface PublisherOptions {
  readonly tree: PublishedTree;
  readonly lease: Lease;
  readonly signer: () => Promise<CheckpointSigner>;
}

/** Resolves to the new checkpoint; undefined if there are no new lines or another node publishes. */
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

/** Opens the tree of the stored checkpoint. Rejects with TreeDamaged if its tiles have another root. */
export async function openStoredTree(tree: PublishedTree, stored: StoredCheckpoint | undefined): Promise<GrowingTree> {
  const growing = await openGrowingTree(stored?.size ?? 0, tree.readTiles, TREE).catch((error: unknown) => {
    throw error instanceof RangeError ? new TreeDamaged(error.message, { cause: error }) : error;
  });
  const note = stored && parseNote(stored.note);
  const checkpoint = note && parseCheckpoint(note.text);
  if (stored === undefined) return growing;
  const isSame = checkpoint?.size === stored.size && Buffer.compare(checkpoint.root, growing.root()) === 0;
  if (!isSame) throw new TreeDamaged(`the tiles do not have the root of the checkpoint of size ${stored.size}`);
  return growing;
}

/** Adds leaves of the log, up to the size `sizeMax`. */
export async function grow(growing: GrowingTree, tree: PublishedTree, sizeMax: number): Promise<void> {
  while (growing.size < sizeMax) {
    const wanted = Math.min(LEAVES_PER_BATCH, sizeMax - growing.size);
    const leaves = await tree.readLeaves(growing.size, wanted);
    for (let at = 0; at < leaves.length; at += HASH_BYTES) growing.add(leaves.subarray(at, at + HASH_BYTES));
    if (leaves.length < wanted * HASH_BYTES) return;
    await setImmediate();
  }
}
