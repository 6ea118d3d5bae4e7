// Evidence about an entry that no line explains. The checkpoint and the entry's inclusion are signed, but the service's statements about
// the entry are not, so the evidence alone proves nothing. Only the entry's line refutes it, and a different line of the same event proves
// misbehaviour.
import { base64 } from '@scure/base';
import { inclusionProof } from '../crypto/merkle-proof.ts';
import type { IndexedLeaf } from './leaf-index.ts';
import { formatNote } from './note.ts';
import { formatTlogProof, type SignedCheckpoint } from './proof.ts';
import { type Tile, tileAt } from './tile.ts';
import { nodesOfTiles, type ReadTiles } from './tiled-tree.ts';
import { TREE } from './tree.ts';

export interface PublishedEntries {
  readonly checkpoint: SignedCheckpoint;
  readonly keys: readonly string[];
  readonly readTile: (tile: Tile) => Promise<Uint8Array>;
}

export interface UnexplainedEntry {
  readonly problem: string;
  readonly leaf: IndexedLeaf;
  readonly entry: Uint8Array;
  /** The line that the service returned for the entry. */
  readonly line: string | null;
}

/** `tlogProof` is null if the service does not serve the tiles. */
export async function entryEvidence({ problem, leaf, entry, line }: UnexplainedEntry, published: PublishedEntries) {
  const { stream, eventId, index } = leaf;
  const named = typeof stream === 'number' ? { chamberId: stream, did: null } : { chamberId: null, did: stream };
  return {
    problem,
    checkpoint: formatNote(published.checkpoint.note),
    keys: published.keys,
    entry: base64.encode(entry),
    tlogProof: await proveEntry(index, published).catch(() => null),
    index: { index, ...named, eventId },
    line,
  };
}

export async function proveEntry(index: number, { checkpoint, readTile }: PublishedEntries): Promise<string> {
  const { size, note } = checkpoint;
  const readTiles: ReadTiles = (refs) => Promise.all(refs.map((ref) => readTile(tileAt(ref, size) as Tile)));
  const hashes = await inclusionProof(index + 1, size, nodesOfTiles(readTiles), TREE.hashNodes);
  return formatTlogProof({ index, hashes, note: formatNote(note) });
}
