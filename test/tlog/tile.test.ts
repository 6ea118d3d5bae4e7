import { describe, expect, it } from 'vitest';
import {
  ENTRIES,
  formatEntries,
  hashesAt,
  levelsOf,
  parseEntries,
  parseTilePath,
  TILE_WIDTH,
  type Tile,
  tileAt,
  tilePath,
  tilesBetween,
} from '../../src/tlog/tile.ts';

const PATHS: readonly (readonly [Tile, string])[] = [
  [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
  [{ level: 0, index: 999, width: 256 }, 'tile/0/999'],
  [{ level: 1, index: 1000, width: 256 }, 'tile/1/x001/000'],
  [{ level: 63, index: 1_234_067, width: 256 }, 'tile/63/x001/x234/067'],
  [{ level: 0, index: 273, width: 112 }, 'tile/0/273.p/112'],
  [{ level: 10, index: 1_234_067, width: 1 }, 'tile/10/x001/x234/067.p/1'],
  [{ level: ENTRIES, index: 1_234_067, width: 255 }, 'tile/entries/x001/x234/067.p/255'],
  [{ level: 0, index: 9_007_199_254_740_991, width: 256 }, 'tile/0/x009/x007/x199/x254/x740/991'],
];

describe('the path of a tile', () => {
  it.each(PATHS)('the tile %o has the path %s, which is parsed', (tile, path) => {
    expect(tilePath(tile)).toBe(path);
    expect(parseTilePath(path)).toEqual(tile);
  });

  it.each([
    'tile/0/x000/000',
    'tile/0/x000/x001/000',
    'tile/0/0',
    'tile/0/0000',
    'tile/0/1000',
    'tile/0/001/000',
    'tile/0/x001',
    'tile/0/X001/000',
    'tile/00/000',
    'tile/64/000',
    'tile/-1/000',
    'tile/0/000.p/0',
    'tile/0/000.p/01',
    'tile/0/000.p/256',
    'tile/0/000.p/',
    'tile/0/000.p',
    'tile/0/000/',
    'tile/0/',
    'tile/0/x009/x007/x199/x254/x740/992',
    'tile/entry/000',
    'tile/8/0/000',
    '/tile/0/000',
    'tile/0/%30%30%30',
    '',
  ])('the tile path %j is rejected', (path) => {
    expect(parseTilePath(path)).toBeUndefined();
  });
});

describe('the tiles of a tree', () => {
  it('the tiles of a tree of 70,000 leaves match the specification’s example', () => {
    const tiles = [0, 1, 2].map((level) => [...tilesBetween(level, 0, 70_000)]);
    const partial = tiles.map((level) => level.filter(({ width }) => width < TILE_WIDTH).map(({ width }) => width));
    expect(tiles.map(({ length }) => length)).toEqual([274, 2, 1]);
    expect(partial).toEqual([[112], [17], [1]]);
    expect(levelsOf(70_000)).toBe(3);
  });

  it('a tree of 256 leaves has a full tile and a tile with one hash', () => {
    expect([...tilesBetween(0, 0, 256)]).toEqual([{ level: 0, index: 0, width: 256 }]);
    expect([...tilesBetween(1, 0, 256)]).toEqual([{ level: 1, index: 0, width: 1 }]);
    expect([...tilesBetween(2, 0, 256)]).toEqual([]);
  });

  it('the new tiles since a smaller tree begin with its partial tile', () => {
    expect([...tilesBetween(ENTRIES, 300, 513)]).toEqual([
      { level: ENTRIES, index: 1, width: 256 },
      { level: ENTRIES, index: 2, width: 1 },
    ]);
    expect([...tilesBetween(1, 300, 400)]).toEqual([]);
  });

  it('the tiles of a huge tree are generated lazily', () => {
    const size = Number.MAX_SAFE_INTEGER;
    expect(tilesBetween(0, 0, size).next().value).toEqual({ level: 0, index: 0, width: 256 });
    const index = Math.floor(size / 256);
    expect(tileAt({ level: 0, index }, size)).toEqual({ level: 0, index, width: 255 });
    expect(tileAt({ level: 0, index: index + 1 }, size)).toBeUndefined();
  });

  it('the tiles of large trees are counted exactly', () => {
    expect(hashesAt(6, Number.MAX_SAFE_INTEGER)).toBe(31);
    expect(levelsOf(Number.MAX_SAFE_INTEGER)).toBe(7);
    expect(levelsOf(0)).toBe(0);
  });
});

describe('a bundle of entries', () => {
  const entries = Uint8Array.from({ length: 3 * 32 }, (_, i) => i);

  it('a bundle has a two-byte length before each entry', () => {
    const bundle = formatEntries(entries);
    expect(Buffer.from(bundle.subarray(0, 4)).toString('hex')).toBe('00200001');
    expect(bundle).toHaveLength(3 * 34);
    expect(parseEntries(bundle)).toEqual(entries);
  });

  it('a truncated bundle, or one with an entry of the wrong length, is rejected', () => {
    const bundle = formatEntries(entries);
    expect(parseEntries(bundle.subarray(0, -1))).toBeUndefined();
    expect(parseEntries(Uint8Array.of(0, 1, 7))).toBeUndefined();
  });
});
