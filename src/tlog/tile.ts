// Tiles (c2sp.org/tlog-tiles): files that contain the tree's hashes and entries. A tile of level L has 256 hashes, each over 256^L
// leaves; the rightmost tile of a level may be partial.
import { concatBytes } from '@noble/hashes/utils.js';
import { HASH_BYTES } from './tree.ts';

export const TILE_WIDTH = 256;
/** The number of tree levels in one level of tiles. */
export const TILE_HEIGHT = 8;
const LEVEL_MAX = 63;
const PATH = /^tile\/(entries|[0-9]{1,2})\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;
const LENGTH_BYTES = 2;

/** The “level” of bundles of entries. A bundle has the entries of the tile of level 0 at the same index. */
export const ENTRIES = 'entries';

export interface Tile {
  readonly level: number | typeof ENTRIES;
  readonly index: number;
  /** The number of hashes or entries, 1 to 256. */
  readonly width: number;
}

/** Returns the path below the log's prefix. */
export function tilePath({ level, index, width }: Tile): string {
  const groups = [index % 1000];
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) groups.unshift(rest % 1000);
  const last = groups.length - 1;
  const elements = groups.map((group, i) => `${i < last ? 'x' : ''}${String(group).padStart(3, '0')}`);
  return `tile/${level}/${elements.join('/')}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** Returns undefined for a path that is not canonical. */
export function parseTilePath(path: string): Tile | undefined {
  const [, level = '', elements = '', width] = PATH.exec(path) ?? [];
  const tile: Tile = {
    level: level === ENTRIES ? ENTRIES : Number(level),
    index: Number(elements.replaceAll(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  const isInRange = (level === ENTRIES || Number(level) <= LEVEL_MAX) && Number.isSafeInteger(tile.index);
  return isInRange && tilePath(tile) === path ? tile : undefined;
}

/** Returns the number of hashes, or entries, in all tiles of a level in a tree of `size` leaves. */
export function hashesAt(level: Tile['level'], size: number): number {
  return level === ENTRIES ? size : Math.floor(size / TILE_WIDTH ** level);
}

/** Returns the number of tile levels in a tree of `size` leaves. */
export function levelsOf(size: number): number {
  let levels = 0;
  while (hashesAt(levels, size) > 0) levels++;
  return levels;
}

/** Returns the tile with its width in a tree of `size` leaves; undefined if that tree does not have it. */
export function tileAt({ level, index }: Pick<Tile, 'level' | 'index'>, size: number): Tile | undefined {
  const width = Math.min(TILE_WIDTH, hashesAt(level, size) - index * TILE_WIDTH);
  return width > 0 ? { level, index, width } : undefined;
}

/**
 * Yields the tiles of a level that are new or wider in a tree of `to` leaves than in a tree of `from` leaves. A generator, because a
 * service may claim a size with more tiles than fit in memory.
 */
export function* tilesBetween(level: Tile['level'], from: number, to: number): Generator<Tile, void> {
  const before = hashesAt(level, from);
  if (hashesAt(level, to) === before) return;
  for (let index = Math.floor(before / TILE_WIDTH); ; index++) {
    const tile = tileAt({ level, index }, to);
    if (tile === undefined) return;
    yield tile;
  }
}

/** Formats concatenated 32-byte entries as a bundle, in which a two-byte length precedes each entry. */
export function formatEntries(entries: Uint8Array): Uint8Array {
  const count = entries.length / HASH_BYTES;
  const bundle = new Uint8Array(count * (LENGTH_BYTES + HASH_BYTES));
  for (let i = 0; i < count; i++) {
    const at = i * (LENGTH_BYTES + HASH_BYTES);
    bundle[at + 1] = HASH_BYTES;
    bundle.set(entries.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES), at + LENGTH_BYTES);
  }
  return bundle;
}

/** Returns the concatenated entries; undefined if any entry is not 32 bytes long. */
export function parseEntries(bundle: Uint8Array): Uint8Array | undefined {
  const entries: Uint8Array[] = [];
  for (let at = 0; at < bundle.length; at += LENGTH_BYTES + HASH_BYTES) {
    const entry = bundle.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + HASH_BYTES);
    if (bundle[at] !== 0 || bundle[at + 1] !== HASH_BYTES || entry.length !== HASH_BYTES) return undefined;
    entries.push(entry);
  }
  return concatBytes(...entries);
}
