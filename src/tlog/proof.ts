// Offline proofs that an entry is in the log (c2sp.org/tlog-proof@v1): index, inclusion proof and checkpoint in one text.
import { base64 } from '@scure/base';
import { thumbprintOf } from '../crypto/jwk.ts';
import { verifyInclusion } from '../crypto/merkle-proof.ts';
import type { PinnedKeys } from '../vocabulary/values.ts';
import { type Checkpoint, parseCheckpoint, parseCount } from './checkpoint.ts';
import { decodeBase64, type NoteKey, openNote, parseNote, type SignedNote } from './note.ts';
import { HASH_BYTES, TREE } from './tree.ts';

const HEADER = 'c2sp.org/tlog-proof@v1';
/** The specification's limit; a tree of 2^53 leaves needs 53. */
const HASHES_MAX = 63;

export interface TlogProof {
  readonly index: number;
  /** The hashes from the leaf's sibling to a child of the root. */
  readonly hashes: readonly Uint8Array[];
  /** The signed checkpoint, verbatim. */
  readonly note: string;
}

export function formatTlogProof({ index, hashes, note }: TlogProof): string {
  return [HEADER, `index ${index}`, ...hashes.map((hash) => base64.encode(hash)), '', note].join('\n');
}

export function parseTlogProof(text: string): TlogProof | undefined {
  const end = text.indexOf('\n\n');
  const [header, ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  // The extra line is not signed.
  if (lines[0]?.startsWith('extra ')) lines.shift();
  const [indexLine = '', ...encoded] = lines;
  const index = parseCount(indexLine.replace(/^index /, ''));
  const hashes = parseHashes(encoded);
  if (header !== HEADER || !indexLine.startsWith('index ') || index === undefined || hashes === undefined)
    return undefined;
  return { index, hashes, note: text.slice(end + 2) };
}

function parseHashes(lines: readonly string[]): readonly Uint8Array[] | undefined {
  if (lines.length > HASHES_MAX) return undefined;
  const hashes = lines.map(decodeBase64).filter((hash) => hash?.length === HASH_BYTES);
  return hashes.length === lines.length ? (hashes as readonly Uint8Array[]) : undefined;
}

export interface SignedCheckpoint extends Checkpoint {
  readonly note: SignedNote;
}

/** Returns the checkpoint if the key has signed it and the key's name is its origin. */
export function openCheckpoint(text: string, key: NoteKey): SignedCheckpoint | undefined {
  const note = parseNote(text);
  const checkpoint = note && parseCheckpoint(note.text);
  if (note === undefined || checkpoint?.origin !== key.name || openNote(note, [key]) === undefined) return undefined;
  return { ...checkpoint, note };
}

export const UNPINNED =
  'the key of the log is not the one that event 1 records: it was rotated or replaced, and only a later chamber can confirm it';

/** Whether the chamber's first event records this key, or no key, as in older events. */
export function isPinned({ publicKey }: NoteKey, pinned: PinnedKeys | undefined): boolean {
  return pinned === undefined || pinned.checkpoints === thumbprintOf(publicKey);
}

/** Returns the checkpoint whose tree has the entry of 32 bytes; undefined if the proof is invalid. */
export function verifyTlogProof(text: string, entry: Uint8Array, key: NoteKey): SignedCheckpoint | undefined {
  const proof = parseTlogProof(text);
  const checkpoint = proof && openCheckpoint(proof.note, key);
  if (proof === undefined || checkpoint === undefined) return undefined;
  const { size, root } = checkpoint;
  const claim = { leaf: TREE.hashLeaf(entry), eventId: proof.index + 1, size, proof: proof.hashes, root };
  return verifyInclusion({ ...claim, hashNodes: TREE.hashNodes }) ? checkpoint : undefined;
}
