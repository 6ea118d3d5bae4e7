import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { consistencyProof, inclusionProof, verifyConsistency, verifyInclusion } from '../../src/crypto/merkle-proof.ts';
import { formatCheckpoint } from '../../src/tlog/checkpoint.ts';
import { formatNote, NOTE_KEY_TYPES, toNoteKey } from '../../src/tlog/note.ts';
import { formatTlogProof, parseTlogProof, verifyTlogProof } from '../../src/tlog/proof.ts';
import { ENTRIES, hashesAt, TILE_WIDTH } from '../../src/tlog/tile.ts';
import {
  nodesOfTiles,
  openGrowingTree,
  type ReadTiles,
  rootOfTiles,
  type StoredTile,
} from '../../src/tlog/tiled-tree.ts';
import { EMPTY_ROOT, TREE } from '../../src/tlog/tree.ts';
import { fromHex } from '../../src/vocabulary/values.ts';
import { Signer } from '../kit/signer.ts';

const HASH_BYTES = 32;

/** The definition in RFC 6962, 2.1, independent of the service's code. */
function mth(leaves: readonly Buffer[]): Buffer {
  const sha256 = (...parts: readonly (string | Buffer)[]) => {
    const hash = createHash('sha256');
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256('\x00', leaves[0] as Buffer);
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha256('\x01', mth(leaves.slice(0, k)), mth(leaves.slice(k)));
}

function entryOf(index: number): Buffer {
  return createHash('sha256').update(`entry ${index}`).digest();
}

class Tiles {
  readonly #tiles = new Map<string, Uint8Array>();
  reads = 0;

  readonly read: ReadTiles = async (refs) => {
    this.reads += refs.length;
    return refs.map(({ level, index }) => this.#tiles.get(`${level}/${index}`));
  };

  write(tiles: readonly StoredTile[]): void {
    for (const { level, index, bytes } of tiles) this.#tiles.set(`${level}/${index}`, bytes);
  }

  drop(level: number): void {
    for (const key of this.#tiles.keys()) if (key.startsWith(`${level}/`)) this.#tiles.delete(key);
  }
}

/** Grows a tree to each size in turn, each time from its tiles alone, and returns the roots. */
async function grow(tiles: Tiles, sizes: readonly number[]): Promise<readonly Uint8Array[]> {
  const roots: Uint8Array[] = [];
  let before = 0;
  for (const size of sizes) {
    const tree = await openGrowingTree(before, tiles.read);
    for (let index = before; index < size; index++) tree.add(entryOf(index));
    expect(tree.size).toBe(size);
    tiles.write(tree.changedTiles());
    roots.push(tree.root());
    before = size;
  }
  return roots;
}

const SIZES = [1, 2, 3, 7, 8, 255, 256, 257, 300, 511, 512, 513, 1000];

describe('a tree of tiles', () => {
  it('the root of a tree without leaves is the hash of the empty string', async () => {
    expect(Buffer.from(EMPTY_ROOT)).toEqual(mth([]));
    expect(await rootOfTiles(0, new Tiles().read)).toEqual(EMPTY_ROOT);
  });

  // These are test vectors of certificate-transparency.
  it.each([
    [1, '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'],
    [2, 'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125'],
    [3, 'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77'],
    [4, 'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7'],
    [5, '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4'],
    [6, '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef'],
    [7, 'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c'],
    [8, '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328'],
  ])('a tree of the first %i leaves of the RFC 6962 vectors has the expected root', async (size, root) => {
    const data = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
    const hashLeaf = (entry: Uint8Array) => mth([Buffer.from(data[entry[0] ?? 0] ?? '', 'hex')]);
    const tree = await openGrowingTree(0, new Tiles().read, { ...TREE, hashLeaf });
    for (let index = 0; index < size; index++) tree.add(new Uint8Array(HASH_BYTES).fill(index));
    expect(Buffer.from(tree.root()).toString('hex')).toBe(root);
  });

  it('a tree has the root of RFC 6962 at each size, whatever its growth steps', async () => {
    const leaves = Array.from({ length: 1000 }, (_, index) => entryOf(index));
    const right = SIZES.map((size) => mth(leaves.slice(0, size)));
    const tiles = new Tiles();
    expect((await grow(tiles, SIZES)).map((root) => Buffer.from(root))).toEqual(right);
    expect((await grow(new Tiles(), [1000]))[0]).toEqual(Uint8Array.from(right.at(-1) as Buffer));
    for (const [i, size] of SIZES.entries()) {
      expect(Buffer.from(await rootOfTiles(size, tiles.read))).toEqual(right[i]);
    }
  });

  it('level 1 of a tree holds the roots of the full tiles of level 0', async () => {
    const tiles = new Tiles();
    await grow(tiles, [70_000]);
    const leaves = Array.from({ length: 256 }, (_, i) => entryOf(256 * 17 + i));
    const [above, entries, partial] = await tiles.read([
      { level: 1, index: 0 },
      { level: ENTRIES, index: 17 },
      { level: 2, index: 0 },
    ]);
    expect(Buffer.from(above?.subarray(17 * HASH_BYTES, 18 * HASH_BYTES) ?? [])).toEqual(mth(leaves));
    expect(Buffer.from(entries ?? [])).toEqual(Buffer.concat(leaves));
    expect(partial).toHaveLength(hashesAt(2, 70_000) * HASH_BYTES);
  });

  it('a proof in a tree of 70,000 leaves reads at most six tiles', async () => {
    const tiles = new Tiles();
    await grow(tiles, [70_000]);
    tiles.reads = 0;
    await inclusionProof(12_345, 70_000, nodesOfTiles(tiles.read), TREE.hashNodes);
    expect(tiles.reads).toBeLessThanOrEqual(6);
  });

  it('a tree does not grow from missing or too narrow tiles', async () => {
    const tiles = new Tiles();
    await grow(tiles, [300]);
    await expect(openGrowingTree(301, tiles.read)).rejects.toThrow(
      'tile 1 of level entries has 44 hashes instead of 45',
    );
    tiles.drop(1);
    await expect(openGrowingTree(300, tiles.read)).rejects.toThrow('tile 0 of level 1 has 0 hashes');
    await expect(rootOfTiles(70_000, tiles.read)).rejects.toThrow(RangeError);
  });
});

describe('proofs of a tree of tiles', async () => {
  const tiles = new Tiles();
  await grow(tiles, [1000]);
  const read = nodesOfTiles(tiles.read);
  const { hashNodes } = TREE;

  it('inclusion proofs verify only for their leaf and position', async () => {
    for (const size of SIZES) {
      const root = await rootOfTiles(size, tiles.read);
      for (const eventId of new Set([1, Math.ceil(size / 2), Math.min(size, TILE_WIDTH), size])) {
        const proof = await inclusionProof(eventId, size, read, hashNodes);
        const claim = { leaf: TREE.hashLeaf(entryOf(eventId - 1)), eventId, size, proof, root, hashNodes };
        expect(verifyInclusion(claim)).toBe(true);
        expect(verifyInclusion({ ...claim, leaf: TREE.hashLeaf(entryOf(eventId)) })).toBe(false);
        if (size > 2) expect(verifyInclusion({ ...claim, eventId: (eventId % size) + 1 })).toBe(false);
      }
    }
  });

  it('consistency proofs verify between all sizes, and not for other roots', async () => {
    for (const from of SIZES) {
      for (const to of SIZES.filter((size) => size >= from)) {
        const proof = await consistencyProof(from, to, read, hashNodes);
        const [fromRoot, toRoot] = [await rootOfTiles(from, tiles.read), await rootOfTiles(to, tiles.read)];
        const claim = { from, to, fromRoot, toRoot, proof, hashNodes };
        expect(verifyConsistency(claim)).toBe(true);
        expect(verifyConsistency({ ...claim, fromRoot: entryOf(0) })).toBe(false);
        expect(verifyConsistency({ ...claim, toRoot: entryOf(0) })).toBe(false);
      }
    }
  });

  it('a third party that has only the key can verify the proofs', async () => {
    const signer = new Signer();
    const key = toNoteKey('forum.example/log/1', NOTE_KEY_TYPES.ed25519, fromHex(signer.pubkeyHex));
    const text = formatCheckpoint({ origin: key.name, size: 1000, root: await rootOfTiles(1000, tiles.read) });
    const bytes = Buffer.from(signer.signText(text), 'base64');
    const note = formatNote({ text, signatures: [{ name: key.name, keyId: key.keyId, bytes }] });
    const hashes = await inclusionProof(500, 1000, read, hashNodes);
    const proof = formatTlogProof({ index: 499, hashes, note });
    expect(proof.split('\n').slice(0, 2)).toEqual(['c2sp.org/tlog-proof@v1', 'index 499']);
    expect(parseTlogProof(proof)).toEqual({ index: 499, hashes, note });
    expect(parseTlogProof(proof.replace('\n', '\nextra YWdl\n'))).toEqual({ index: 499, hashes, note });
    expect(verifyTlogProof(proof, entryOf(499), key)?.size).toBe(1000);
    expect(verifyTlogProof(proof, entryOf(498), key)).toBeUndefined();
    expect(verifyTlogProof(proof.replace('index 499', 'index 498'), entryOf(499), key)).toBeUndefined();
    expect(verifyTlogProof(proof, entryOf(499), { ...key, name: 'another.example' })).toBeUndefined();
    for (const malformed of [
      proof.replace('index 499', 'index 0499'),
      proof.replace('@v1', '@v2'),
      '',
      'index 1\n\n',
    ]) {
      expect(parseTlogProof(malformed)).toBeUndefined();
    }
  });
});
