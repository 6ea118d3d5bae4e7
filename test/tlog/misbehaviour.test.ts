// Proofs that two checkpoints contradict each other, built from the tiles of the larger one.
import { describe, expect, it } from 'vitest';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { formatCheckpoint } from '../../src/tlog/checkpoint.ts';
import { forkProofByTiles, parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import { formatNote, formatVerifierKey, NOTE_KEY_TYPES, signNote, toNoteKey } from '../../src/tlog/note.ts';
import { openCheckpoint, type SignedCheckpoint } from '../../src/tlog/proof.ts';
import { type Tile, tilePath } from '../../src/tlog/tile.ts';
import { openGrowingTree } from '../../src/tlog/tiled-tree.ts';

const SEED = new Uint8Array(32).fill(1);
const KEY = toNoteKey('forum.test/log/1', NOTE_KEY_TYPES.ed25519, publicKeyOf(SEED));
const KEYS = [formatVerifierKey(KEY)];
const SIZES = [1, 2, 3, 4, 7, 8, 100, 255, 256, 257, 511, 512, 513];
const SIZES_AFTER = [0, 1, 2, 5, 256, 300];

/** A log whose history differs from index `forkedAt` on. */
async function logOf(size: number, forkedAt = size) {
  const tree = await openGrowingTree(0, async () => []);
  for (let i = 0; i < size; i++) {
    const entry = new Uint8Array(32);
    new DataView(entry.buffer).setUint32(0, i);
    entry[31] = i < forkedAt ? 0 : 1;
    tree.add(entry);
  }
  const tiles = new Map(
    tree.changedTiles().map(({ level, index, bytes }) => [tilePath({ level, index, width: bytes.length / 32 }), bytes]),
  );
  const text = formatCheckpoint({ origin: KEY.name, size, root: tree.root() });
  const checkpoint = openCheckpoint(
    formatNote({ text, signatures: [signNote(text, KEY, signWith(SEED))] }),
    KEY,
  ) as SignedCheckpoint;
  const readTile = async (tile: Tile) => tiles.get(tilePath(tile)) ?? expect.fail(`no ${tilePath(tile)}`);
  return { checkpoint, readTile };
}

describe('the checkpoint of a log', () => {
  it.each(SIZES)(
    'a checkpoint of size %i and a later one prove a fork at any index, and nothing without a fork',
    async (size) => {
      const honest = await logOf(size);
      for (const to of SIZES_AFTER.map((more) => size + more)) {
        const extended = await logOf(to);
        expect(
          await forkProofByTiles([honest.checkpoint, extended.checkpoint], KEYS, extended.readTile),
        ).toBeUndefined();
        for (const forkedAt of new Set([0, size - 1])) {
          const forked = await logOf(to, forkedAt);
          const proof = await forkProofByTiles([honest.checkpoint, forked.checkpoint], KEYS, forked.readTile);
          const proved = await verifyMisbehaviour(parseMisbehaviour(JSON.stringify(proof)));
          expect(proved).toMatchObject({ checkpointKeys: KEYS, receiptKeys: [], logId: '1' });
        }
        if (to === size) continue;
        // A log that forks after this size agrees with it.
        const later = await logOf(to, size);
        expect(await forkProofByTiles([honest.checkpoint, later.checkpoint], KEYS, later.readTile)).toBeUndefined();
      }
    },
  );

  it('a log cannot be accused with the tiles of another log', async () => {
    const [honest, extended, forked] = await Promise.all([logOf(300), logOf(1_000), logOf(1_000, 0)]);
    const proving = forkProofByTiles([honest.checkpoint, extended.checkpoint], KEYS, forked.readTile);
    await expect(proving).rejects.toThrow('the tiles do not match the checkpoint');
    const proof = await forkProofByTiles([honest.checkpoint, forked.checkpoint], KEYS, forked.readTile);
    const [{ note }, { note: other }] = [honest.checkpoint, extended.checkpoint];
    const forged = { ...proof, checkpoints: [formatNote(note), formatNote(other)] };
    const verifying = async () => verifyMisbehaviour(parseMisbehaviour(JSON.stringify(forged)));
    await expect(verifying()).rejects.toThrow('the path does not match the larger checkpoint');
  });

  it.each([
    ['no content', ''],
    ['an array', '[]'],
    ['another kind', '{"format":"chambers-misbehaviour@v1","kind":"three-receipts"}'],
    [
      'another format',
      '{"format":"chambers-misbehaviour@v2","kind":"two-checkpoints","checkpoints":["",""],"path":[],"keys":[]}',
    ],
    [
      'an unknown member',
      '{"format":"chambers-misbehaviour@v1","kind":"two-checkpoints","checkpoints":["",""],"path":[],"keys":[],"x":1}',
    ],
  ])('a log cannot be accused with a file with %s', (_what, text) => {
    expect(() => parseMisbehaviour(text)).toThrow();
  });

  it.each([
    ['without a key', []],
    ['by a witness key', [formatVerifierKey(toNoteKey(KEY.name, NOTE_KEY_TYPES.cosignature, KEY.publicKey))]],
    ['by another key', [formatVerifierKey(toNoteKey(KEY.name, NOTE_KEY_TYPES.ed25519, publicKeyOf(SEED.with(0, 2))))]],
  ])('a log cannot be accused with checkpoints that are signed %s', async (_what, keys) => {
    const [honest, forked] = await Promise.all([logOf(3), logOf(5, 0)]);
    const proof = await forkProofByTiles([honest.checkpoint, forked.checkpoint], KEYS, forked.readTile);
    const forged = { ...proof, keys } as Parameters<typeof verifyMisbehaviour>[0];
    await expect(verifyMisbehaviour(forged)).rejects.toThrow(/key/);
  });
});
