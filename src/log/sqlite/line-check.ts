// Whether a line without a checksum, of an earlier schema, is as it was written. Newer lines have a checksum beside them, which
// costs a read a tenth of what a hash would and finds what a disk or a slip does to a file. A fold, fsck and the auditor check
// the hashes, which also detect forged lines.
import { isUtf8 } from 'node:buffer';
import { HASH_BYTES, leafHash } from '../../crypto/merkle.ts';
import { fromLine, toLine } from '../../vocabulary/events.ts';

/** For events of earlier schemas, which have no checksum: their leaf in the tree, or, outside of it, their form. */
export function isWhole(line: Buffer, nodes: Buffer | null): boolean {
  return nodes === null ? isCanonical(line) : isLeafOf(line, nodes);
}

function isLeafOf(line: Buffer, nodes: Buffer): boolean {
  return nodes.subarray(0, HASH_BYTES).equals(leafHash(line));
}

function isCanonical(line: Buffer): boolean {
  try {
    return isUtf8(line) && toLine(fromLine(line.toString())) === line.toString();
  } catch {
    return false;
  }
}
