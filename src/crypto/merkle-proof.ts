// Inclusion and consistency proofs of a Merkle tree (RFC 9162, 2.1), built from O(log n) stored nodes and verified without the log.
// A chamber's tree sorts siblings before hashing them, so OpenZeppelin's MerkleProof accepts its inclusion proofs; callers with other
// trees of this shape pass their own hash function.
import { foldPeaks, HASH_BYTES, type NodeHash, type NodeRef, nodeHash, peakRefs } from './merkle.ts';

/** Reads stored nodes, in the order requested. */
export type ReadNodes = (refs: readonly NodeRef[]) => Promise<readonly Uint8Array[]>;

/** Returns the siblings from the leaf of event `eventId` up to the root of the tree over the first `size` events; 1 ≤ eventId ≤ size. */
export function inclusionProof(
  eventId: number,
  size: number,
  read: ReadNodes,
  hashNodes: NodeHash = nodeHash,
): Promise<readonly Uint8Array[]> {
  requireOrder(eventId, size);
  return rootsOf(inclusionPath(eventId - 1, { start: 0, size }), read, hashNodes);
}

/** Returns the nodes that prove that the tree of `to` leaves begins with the tree of `from` leaves; 1 ≤ from ≤ to. */
export function consistencyProof(
  from: number,
  to: number,
  read: ReadNodes,
  hashNodes: NodeHash = nodeHash,
): Promise<readonly Uint8Array[]> {
  requireOrder(from, to);
  return rootsOf(consistencyPath(from, { start: 0, size: to }), read, hashNodes);
}

/** The `size` leaves after the first `start`, which form a subtree. */
interface Range {
  readonly start: number;
  readonly size: number;
}

function inclusionPath(index: number, range: Range): readonly Range[] {
  if (range.size === 1) return [];
  const [left, right] = halves(range);
  if (index < right.start) return [...inclusionPath(index, left), right];
  return [...inclusionPath(index, right), left];
}

/** RFC 9162, section 2.1.4.1; `from` counts from the tree's first leaf. A range at start 0 is the old tree, whose root is known. */
function consistencyPath(from: number, range: Range): readonly Range[] {
  if (from === range.start + range.size) return range.start === 0 ? [] : [range];
  const [left, right] = halves(range);
  if (from <= right.start) return [...consistencyPath(from, left), right];
  return [...consistencyPath(from, right), left];
}

/** Splits off the largest perfect subtree that is smaller than the range. */
function halves({ start, size }: Range): readonly [Range, Range] {
  let left = 1;
  while (left * 2 < size) left *= 2;
  return [
    { start, size: left },
    { start: start + left, size: size - left },
  ];
}

/** Reads all nodes at once: only the range at the right edge may be imperfect, with O(log n) peaks. */
async function rootsOf(ranges: readonly Range[], read: ReadNodes, hashNodes: NodeHash): Promise<readonly Uint8Array[]> {
  const refs = ranges.map(({ start, size }) => peakRefs(size, start));
  const nodes = await read(refs.flat());
  let taken = 0;
  return refs.map(({ length }) => {
    taken += length;
    return foldPeaks(nodes.slice(taken - length, taken), hashNodes);
  });
}

function requireOrder(smaller: number, larger: number): void {
  if (!isOrdered(smaller, larger))
    throw new RangeError(`no proof for ${smaller} in ${larger}: 1 ≤ ${smaller} ≤ ${larger} must hold`);
}

export interface InclusionClaim {
  readonly leaf: Uint8Array;
  readonly eventId: number;
  readonly size: number;
  readonly proof: readonly Uint8Array[];
  readonly root: Uint8Array;
  /** Defaults to that of a chamber's tree. */
  readonly hashNodes?: NodeHash;
}

/**
 * Whether the proof leads from the leaf to the root and has the right length for the position (RFC 9162, 2.1.3.2). Sorted siblings don't
 * bind the position, so the caller must also compare the eventId in the leaf's line.
 */
export function verifyInclusion({ leaf, eventId, size, proof, root, hashNodes = nodeHash }: InclusionClaim): boolean {
  if (!isOrdered(eventId, size) || ![leaf, root, ...proof].every(isHash)) return false;
  let position: Position = { index: eventId - 1, last: size - 1 };
  let hash = leaf;
  for (const sibling of proof) {
    if (position.last === 0) return false;
    hash = isRightChild(position) ? hashNodes(sibling, hash) : hashNodes(hash, sibling);
    position = parentOf(position);
  }
  return position.last === 0 && isSame(hash, root);
}

export interface ConsistencyClaim {
  readonly from: number;
  readonly to: number;
  readonly fromRoot: Uint8Array;
  readonly toRoot: Uint8Array;
  readonly proof: readonly Uint8Array[];
  /** Defaults to that of a chamber's tree. */
  readonly hashNodes?: NodeHash;
}

/**
 * Whether the tree of `to` leaves under toRoot begins with the `from` leaves under fromRoot (RFC 9162, 2.1.4.2). The hashes don't bind
 * the sizes, so sizes and roots must come from the same source.
 */
export function verifyConsistency({ proof, fromRoot, toRoot, ...trees }: ConsistencyClaim): boolean {
  if (!isOrdered(trees.from, trees.to) || ![fromRoot, toRoot].every(isHash)) return false;
  if (trees.from === trees.to) return proof.length === 0 && isSame(fromRoot, toRoot);
  const path = isPerfect(trees.from) ? [fromRoot, ...proof] : proof;
  const roots = consistencyRoots({ ...trees, path });
  return roots !== undefined && isSame(roots.from, fromRoot) && isSame(roots.to, toRoot);
}

/** Whether a tree of this size is one perfect subtree, whose known root a consistency proof omits. */
export function isPerfect(size: number): boolean {
  return Number.isInteger(Math.log2(size)) && 2 ** Math.log2(size) === size;
}

interface ConsistencyPath extends Pick<ConsistencyClaim, 'from' | 'to' | 'hashNodes'> {
  /** The proof, preceded by the root of `from` leaves if that tree is perfect. */
  readonly path: readonly Uint8Array[];
}

/** Computes both roots from the path; undefined if the path does not fit the sizes. The larger root binds the smaller one. */
export function consistencyRoots({ from, to, path, hashNodes = nodeHash }: ConsistencyPath) {
  const [first, ...rest] = path;
  if (!isOrdered(from, to) || from === to || first === undefined || !path.every(isHash)) return undefined;
  // Start at the largest perfect subtree that ends with the last old leaf.
  let position: Position = { index: from - 1, last: to - 1 };
  while (position.index % 2 === 1) position = levelUp(position);
  let [oldHash, newHash] = [first, first];
  for (const node of rest) {
    if (position.last === 0) return undefined;
    const isRight = isRightChild(position);
    if (isRight) oldHash = hashNodes(node, oldHash);
    newHash = isRight ? hashNodes(node, newHash) : hashNodes(newHash, node);
    position = parentOf(position);
  }
  return position.last === 0 ? { from: oldHash, to: newHash } : undefined;
}

/** A node's index in its level, and the level's last index. Untrusted and possibly large, so 32-bit operators must not be used. */
interface Position {
  readonly index: number;
  readonly last: number;
}

/** A last node without a sibling moves up unchanged until it is a right child. */
function isRightChild({ index, last }: Position): boolean {
  return index % 2 === 1 || index === last;
}

/** Returns the parent shared with the next sibling. */
function parentOf(position: Position): Position {
  let node = position;
  while (node.index === node.last && node.index % 2 === 0 && node.index > 0) node = levelUp(node);
  return levelUp(node);
}

function levelUp({ index, last }: Position): Position {
  return { index: Math.floor(index / 2), last: Math.floor(last / 2) };
}

function isOrdered(smaller: number, larger: number): boolean {
  return Number.isSafeInteger(smaller) && Number.isSafeInteger(larger) && 1 <= smaller && smaller <= larger;
}

function isHash(bytes: Uint8Array): boolean {
  return bytes.length === HASH_BYTES;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.every((byte, i) => byte === b[i]);
}
