// What a mirror keeps of an entry that no line explains: a proof of misbehaviour where two lines of one event, or one line twice, are in the
// log; else what the service has signed and said, from which it can't be cleared without the line of that entry.
import { base64 } from '@scure/base';
import { leafHash } from '../crypto/merkle.ts';
import { inclusionProof } from '../crypto/merkle-proof.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { placeOfLine } from '../tlog/leaf-index.ts';
import { MISBEHAVIOUR, type Misbehaviour, verifyMisbehaviour } from '../tlog/misbehaviour.ts';
import { formatNote } from '../tlog/note.ts';
import { formatTlogProof, type SignedCheckpoint } from '../tlog/proof.ts';
import { type Tile, tileAt } from '../tlog/tile.ts';
import { nodesOfTiles, type ReadTiles } from '../tlog/tiled-tree.ts';
import { TREE } from '../tlog/tree.ts';
import type { Unexplained } from './line-finder.ts';

export interface Witnessed {
  readonly checkpoint: SignedCheckpoint;
  readonly keys: readonly string[];
  readonly readTile: (tile: Tile) => Promise<Uint8Array>;
  /** The verified lines before it, in the order of the tree. */
  readonly lines: () => AsyncIterable<string>;
}

/** The content of the file. A service that does not serve its own tiles leaves it without the tlog-proof. */
export async function evidenceOf(unexplained: Unexplained, witnessed: Witnessed): Promise<object> {
  const { message: problem, leaf, entry, line } = unexplained;
  const text = line === undefined ? null : Buffer.from(line).toString();
  const tlogProof = await prove(leaf.index, witnessed).catch(() => null);
  const proof =
    tlogProof === null ? undefined : await twoLines(unexplained, tlogProof, witnessed).catch(() => undefined);
  if (proof !== undefined) return proof;
  const indexed = typeof leaf.stream === 'number' ? { chamberId: leaf.stream } : { did: leaf.stream };
  return {
    problem,
    checkpoint: formatNote(witnessed.checkpoint.note),
    keys: witnessed.keys,
    entry: base64.encode(entry),
    tlogProof,
    index: { index: leaf.index, ...indexed, eventId: leaf.eventId },
    line: text,
  };
}

async function prove(index: number, { checkpoint, readTile }: Witnessed): Promise<string> {
  const { size, note } = checkpoint;
  const readTiles: ReadTiles = (refs) => Promise.all(refs.map((ref) => readTile(tileAt(ref, size) as Tile)));
  const hashes = await inclusionProof(index + 1, size, nodesOfTiles(readTiles), TREE.hashNodes);
  return formatTlogProof({ index, hashes, note: formatNote(note) });
}

/** The line of the entry, if it was served or is one that the log has already, and the earlier line of the same event. */
async function twoLines({ leaf, entry, line }: Unexplained, tlogProof: string, witnessed: Witnessed) {
  const isOf = (text: string) => Buffer.compare(leafHash(Buffer.from(text)), entry) === 0;
  const served = line === undefined ? undefined : Buffer.from(line).toString();
  const { stream, eventId } = (served !== undefined && isOf(served) && placeOf(served)) || leaf;
  let index = 0;
  for await (const earlier of witnessed.lines()) {
    const place = index === leaf.index ? undefined : placeOf(earlier);
    if (place?.stream === stream && place.eventId === eventId) {
      const own = [served, earlier].find((text) => text !== undefined && isOf(text));
      if (own === undefined) return undefined;
      const tlogProofs: [string, string] = [await prove(index, witnessed), tlogProof];
      const keys = [...witnessed.keys];
      const proof: Misbehaviour = { format: MISBEHAVIOUR, kind: 'two-lines', lines: [earlier, own], tlogProofs, keys };
      await verifyMisbehaviour(proof);
      return proof;
    }
    index++;
  }
  return undefined;
}

function placeOf(line: string) {
  return placeOfLine(line, READ_LIMITS.jsonValuesMax);
}
