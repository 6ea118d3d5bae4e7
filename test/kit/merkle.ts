// Computes Merkle roots over lines independently, with merkletreejs and the format in src/log/README.md.
import { MerkleTree } from 'merkletreejs';
import { keccak256 } from 'viem';

export function merkleRootOf(lines: readonly string[]): string {
  const leaves = lines.map((line) => hash(hash(Buffer.from(line))));
  return new MerkleTree(leaves, hash, { sortPairs: true }).getHexRoot();
}

/** Returns the `prev` of the event after this line. */
export function leafOf(line: string): string {
  return `0x${hash(hash(Buffer.from(line))).toString('hex')}`;
}

function hash(bytes: Buffer): Buffer {
  return Buffer.from(keccak256(bytes, 'bytes'));
}
