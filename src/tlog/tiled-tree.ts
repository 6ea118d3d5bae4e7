// A tree stored as tiles. It grows at its right edge, and its nodes are computed from tiles, so nothing needs to stay in memory: the path
// from any leaf to the root needs only a few tiles.
import { foldPeaks, type NodeHash, type NodeRef, peakRefs } from '../crypto/merkle.ts';
import type { ReadNodes } from '../crypto/merkle-proof.ts';
import { ENTRIES, hashesAt, levelsOf, TILE_HEIGHT, TILE_WIDTH, type Tile, tileAt } from './tile.ts';
import { EMPTY_ROOT, HASH_BYTES, TREE, type TreeHash } from './tree.ts';

/** A tile without its width, which follows from its bytes. */
export type TileRef = Pick<Tile, 'level' | 'index'>;

export interface StoredTile extends TileRef {
  /** The concatenated hashes or entries. */
  readonly bytes: Uint8Array;
}

/** Resolves to the tiles in the requested order; undefined for a missing tile. */
export type ReadTiles = (refs: readonly TileRef[]) => Promise<readonly (Uint8Array | undefined)[]>;

/** The partial tiles of a tree of `size` leaves, to which new leaves are added. */
export function edgeTiles(size: number): readonly Tile[] {
  const levels: readonly Tile['level'][] = [ENTRIES, ...Array.from({ length: levelsOf(size) }, (_, level) => level)];
  return levels.flatMap(
    (level) => tileAt({ level, index: Math.floor(hashesAt(level, size) / TILE_WIDTH) }, size) ?? [],
  );
}

/** Rejects with a RangeError if a tile at the edge is missing or too narrow for the size. */
export async function openGrowingTree(size: number, readTiles: ReadTiles, hash = TREE): Promise<GrowingTree> {
  const edge = edgeTiles(size);
  const read = await readTiles(edge);
  const tiles = edge.map((tile, i) => {
    const bytes = wholeTile(tile, read[i] ?? new Uint8Array(), tile.width);
    return { ...tile, bytes: bytes.subarray(0, tile.width * HASH_BYTES) };
  });
  return new GrowingTree(size, tiles, hash);
}

class GrowingLevel {
  index: number;
  width: number;
  bytes = new Uint8Array(TILE_WIDTH * HASH_BYTES);
  hasChanged = false;

  constructor(hashes: number) {
    this.index = Math.floor(hashes / TILE_WIDTH);
    this.width = hashes % TILE_WIDTH;
  }

  /** If the tile becomes full, returns it and starts the next one. */
  add(hash: Uint8Array): Omit<StoredTile, 'level'> | undefined {
    this.bytes.set(hash, this.width * HASH_BYTES);
    this.width++;
    this.hasChanged = true;
    if (this.width < TILE_WIDTH) return undefined;
    const full = { index: this.index, bytes: this.bytes };
    this.index++;
    this.width = 0;
    this.bytes = new Uint8Array(TILE_WIDTH * HASH_BYTES);
    this.hasChanged = false;
    return full;
  }

  partial(): Uint8Array {
    return this.bytes.slice(0, this.width * HASH_BYTES);
  }
}

export class GrowingTree {
  #size: number;
  readonly #hash: TreeHash;
  readonly #entries: GrowingLevel;
  readonly #levels: GrowingLevel[];
  #full: StoredTile[] = [];

  constructor(size: number, edge: readonly StoredTile[], hash: TreeHash) {
    this.#size = size;
    this.#hash = hash;
    this.#entries = new GrowingLevel(size);
    this.#levels = Array.from({ length: levelsOf(size) }, (_, level) => new GrowingLevel(hashesAt(level, size)));
    for (const { level, bytes } of edge) this.#at(level).bytes.set(bytes);
  }

  get size(): number {
    return this.#size;
  }

  /** Appends a 32-byte entry. */
  add(entry: Uint8Array): void {
    const full = this.#entries.add(entry);
    if (full !== undefined) this.#full.push({ level: ENTRIES, ...full });
    this.#addHash(0, this.#hash.hashLeaf(entry));
    this.#size++;
  }

  #addHash(level: number, hash: Uint8Array): void {
    const full = this.#at(level).add(hash);
    if (full === undefined) return;
    this.#full.push({ level, ...full });
    this.#addHash(level + 1, perfectRoot(full.bytes, this.#hash.hashNodes));
  }

  #at(level: Tile['level']): GrowingLevel {
    if (level === ENTRIES) return this.#entries;
    const found = this.#levels[level] ?? new GrowingLevel(0);
    this.#levels[level] = found;
    return found;
  }

  /** Returns the tiles that have become full, and releases them. */
  takeFullTiles(): readonly StoredTile[] {
    const full = this.#full;
    this.#full = [];
    return full;
  }

  /** Returns the tiles that became full, and the partial tiles that grew. */
  changedTiles(): readonly StoredTile[] {
    const levels = [[ENTRIES, this.#entries] as const, ...this.#levels.entries()];
    const partial = levels
      .filter(([, { hasChanged }]) => hasChanged)
      .map(([level, tile]) => ({ level, index: tile.index, bytes: tile.partial() }));
    return [...this.#full, ...partial];
  }

  root(): Uint8Array {
    const peaks: Uint8Array[] = [];
    for (const tile of this.#levels.toReversed()) peaks.push(...peaksOf(tile.partial(), this.#hash.hashNodes));
    return peaks.length === 0 ? EMPTY_ROOT : foldPeaks(peaks, this.#hash.hashNodes);
  }
}

/** Returns the roots of the largest perfect subtrees over adjacent hashes, largest first. */
function peaksOf(hashes: Uint8Array, hashNodes: NodeHash): readonly Uint8Array[] {
  return peakRefs(hashes.length / HASH_BYTES).map(({ eventId, level }) => {
    const end = eventId * HASH_BYTES;
    return perfectRoot(hashes.subarray(end - 2 ** level * HASH_BYTES, end), hashNodes);
  });
}

/** Returns the root over adjacent hashes, whose number must be a power of two. */
export function perfectRoot(hashes: Uint8Array, hashNodes: NodeHash): Uint8Array {
  let level = Array.from({ length: hashes.length / HASH_BYTES }, (_, i) => hashAt(hashes, i));
  while (level.length > 1) {
    const parents: Uint8Array[] = [];
    for (let i = 0; i < level.length; i += 2) {
      parents.push(hashNodes(level[i] as Uint8Array, level[i + 1] as Uint8Array));
    }
    level = parents;
  }
  return level[0] as Uint8Array;
}

function hashAt(hashes: Uint8Array, i: number): Uint8Array {
  return hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES);
}

/** Reads nodes for proofs from tiles. Rejects with a RangeError if a tile is missing or too narrow. */
export function nodesOfTiles(readTiles: ReadTiles, { hashNodes }: TreeHash = TREE): ReadNodes {
  return async (refs) => {
    const spans = refs.map(spanOf);
    const wanted = new Map(spans.map(({ tile }) => [keyOf(tile), tile]));
    const found = await readTiles([...wanted.values()]);
    const tiles = new Map([...wanted.keys()].map((key, i) => [key, found[i]]));
    return spans.map(({ tile, first, count }) => {
      const bytes = wholeTile(tile, tiles.get(keyOf(tile)) ?? new Uint8Array(), first + count);
      return perfectRoot(bytes.subarray(first * HASH_BYTES, (first + count) * HASH_BYTES), hashNodes);
    });
  };
}

/** Computes the root of the tree of `size` leaves from its own tiles or those of a larger tree. */
export async function rootOfTiles(size: number, readTiles: ReadTiles, hash: TreeHash = TREE): Promise<Uint8Array> {
  if (size === 0) return EMPTY_ROOT;
  return foldPeaks(await nodesOfTiles(readTiles, hash)(peakRefs(size)), hash.hashNodes);
}

/** Returns the tile, and the range of its hashes, that determine the node's hash. */
function spanOf({ eventId, level }: NodeRef): {
  readonly tile: TileRef;
  readonly first: number;
  readonly count: number;
} {
  const tileLevel = Math.floor(level / TILE_HEIGHT);
  const count = 2 ** (level % TILE_HEIGHT);
  const start = eventId / TILE_WIDTH ** tileLevel - count;
  const index = Math.floor(start / TILE_WIDTH);
  return { tile: { level: tileLevel, index }, first: start - index * TILE_WIDTH, count };
}

function keyOf({ level, index }: TileRef): string {
  return `${level}/${index}`;
}

function wholeTile({ level, index }: TileRef, bytes: Uint8Array, width: number): Uint8Array {
  if (bytes.length >= width * HASH_BYTES) return bytes;
  const has = bytes.length / HASH_BYTES;
  throw new RangeError(`tile ${index} of level ${level} has ${has} hashes instead of ${width}`);
}
