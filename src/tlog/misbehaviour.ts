// Proofs of misbehaviour: JSON objects with two statements that an honest service would never sign together. A proof can be verified
// offline but does not show who owns the keys, so the result names them. Proofs are untrusted: verification throws an Error.
import { base64 } from '@scure/base';
import * as v from 'valibot';
import { keptReceipt, verifyKeptReceipt } from '../crypto/kept-receipt.ts';
import { consistencyProof, consistencyRoots, isPerfect } from '../crypto/merkle-proof.ts';
import type { ParsedReceipt } from '../crypto/receipt.ts';
import { contradicts, lineLeaf, originalProblem } from '../crypto/stub.ts';
import { openStub } from '../crypto/stub-reader.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import { parseJson } from '../vocabulary/json.ts';
import { COVERED_SECONDS_MAX, instantOf, toHex } from '../vocabulary/values.ts';
import { nameOfEvent, positionOfLine } from './leaf-index.ts';
import { formatNote, NOTE_KEY_TYPES, parseCosignature, parseVerifierKey, signatureBy } from './note.ts';
import { openCheckpoint, parseTlogProof, type SignedCheckpoint, verifyTlogProof } from './proof.ts';
import { type Tile, tileAt } from './tile.ts';
import { GrowingTree, nodesOfTiles, type ReadTiles, rootOfTiles } from './tiled-tree.ts';
import { HASH_BYTES, TREE } from './tree.ts';

export const MISBEHAVIOUR = 'chambers-misbehaviour@v1';

const format = v.literal(MISBEHAVIOUR);
/** Verifier keys (C2SP signed-note) of the log or of witnesses. */
const keys = v.array(v.string());
const inBase64 = v.string();

const misbehaviour = v.variant('kind', [
  /** Two receipts for the same event, with different leaves. */
  v.strictObject({ format, kind: v.literal('two-receipts'), receipts: v.strictTuple([keptReceipt, keptReceipt]) }),
  /** A receipt, and a different line of the same event with a proof that it is in the log. */
  v.strictObject({
    ...{ format, kind: v.literal('receipt-and-line'), receipt: keptReceipt },
    ...{ line: v.string(), tlogProof: v.string(), keys },
  }),
  /**
   * A receipt, and a checkpoint with all entries of its tree, which do not include the receipt's entry. A witness's cosignature, or the
   * `ts` of a line in the tree, shows that the checkpoint is later than the receipt.
   */
  v.strictObject({
    ...{ format, kind: v.literal('receipt-and-checkpoint'), receipt: keptReceipt },
    ...{ checkpoint: v.string(), entries: inBase64, keys, witnesses: keys, laterLine: v.nullable(v.string()) },
  }),
  /** Two lines of the same event, or one line at two indexes, each with a proof that it is in the log. */
  v.strictObject({
    ...{ format, kind: v.literal('two-lines'), lines: v.strictTuple([v.string(), v.string()]) },
    ...{ tlogProofs: v.strictTuple([v.string(), v.string()]), keys },
  }),
  /**
   * Two checkpoints, the smaller one first. If their sizes differ, `path` is a consistency proof in the larger tree that leads to a
   * different root at the smaller size; if the smaller size is a power of two, the path begins with that root.
   */
  v.strictObject({
    ...{ format, kind: v.literal('two-checkpoints'), checkpoints: v.strictTuple([v.string(), v.string()]) },
    ...{ path: v.array(inBase64), keys },
  }),
  /** A stub, and a line with the same leaf that differs in more than the texts or contains no texts. */
  v.strictObject({ format, kind: v.literal('stub-and-line'), stub: v.string(), line: v.string() }),
  /** Two stubs of one event that differ in more than the time, reason and key of the withholding. */
  v.strictObject({ format, kind: v.literal('two-stubs'), stubs: v.strictTuple([v.string(), v.string()]) }),
]);

export type Misbehaviour = v.InferOutput<typeof misbehaviour>;
type ProofOf<Kind extends Misbehaviour['kind']> = Extract<Misbehaviour, { readonly kind: Kind }>;

/** Proved if all keys belong to one service. */
export interface ProvedMisbehaviour {
  readonly sentence: string;
  readonly logId: string;
  /** Thumbprints of the keys that signed receipts. */
  readonly receiptKeys: readonly string[];
  /** Verifier keys that signed checkpoints. */
  readonly checkpointKeys: readonly string[];
  /** Verifier keys of the witnesses whose clocks the proof relies on. */
  readonly witnessKeys: readonly string[];
}

/** Throws an Error for malformed text. */
export function parseMisbehaviour(text: string): Misbehaviour {
  const { success, output, issues } = v.safeParse(misbehaviour, parseJson(text));
  if (success) return output;
  throw new Error(`it is not a proof of misbehaviour: ${v.getDotPath(issues[0]) ?? 'the JSON value'} is invalid`);
}

/** Throws an Error that names the invalid part. */
export async function verifyMisbehaviour(proof: Misbehaviour): Promise<ProvedMisbehaviour> {
  switch (proof.kind) {
    case 'two-receipts':
      return verifyTwoReceipts(proof);
    case 'receipt-and-line':
      return verifyLine(proof);
    case 'receipt-and-checkpoint':
      return verifyMissing(proof);
    case 'two-lines':
      return verifyTwoLines(proof);
    case 'two-checkpoints':
      return verifyTwoCheckpoints(proof);
    case 'stub-and-line':
      return verifyStubAndLine(proof);
    case 'two-stubs':
      return verifyTwoStubs(proof);
    default: {
      const unhandled: never = proof;
      throw new Error(`unhandled proof ${JSON.stringify(unhandled)}`);
    }
  }
}

function verifyTwoReceipts({ receipts }: ProofOf<'two-receipts'>): ProvedMisbehaviour {
  const [one, other] = [verifyKeptReceipt(receipts[0]), verifyKeptReceipt(receipts[1])];
  const isSameEvent = (['logId', 'stream', 'eventId'] as const).every((name) => one[name] === other[name]);
  requireTrue(isSameEvent, 'the receipts are for different events');
  requireTrue(!isSame(one.leaf, other.leaf), 'both receipts promise the same leaf');
  return {
    sentence: `The service has signed two receipts of ${nameOfEvent(one)}: one promises the leaf ${toHex(one.leaf)}, the other one ${toHex(other.leaf)}.`,
    logId: one.logId,
    receiptKeys: [...new Set([one.keyid, other.keyid])],
    checkpointKeys: [],
    witnessKeys: [],
  };
}

function verifyLine({ receipt, line, tlogProof, keys }: ProofOf<'receipt-and-line'>): ProvedMisbehaviour {
  const parsed = verifyKeptReceipt(receipt);
  const leaf = leafOf(line);
  const { chamberId, did, eventId } = Object(parseJson(line));
  requireTrue((chamberId ?? did) === parsed.stream && eventId === parsed.eventId, 'the line is for a different event');
  requireTrue(!isSame(leaf, parsed.leaf), 'the line is the one that the receipt promises');
  const { key, checkpoint } = openWith(keys, parseTlogProof(tlogProof)?.note ?? '');
  requireLog(parsed, checkpoint);
  requireTrue(verifyTlogProof(tlogProof, leaf, toKey(key)) !== undefined, 'the tlog-proof does not match the line');
  return {
    sentence: `The service has signed a receipt that promises the leaf ${toHex(parsed.leaf)} for ${nameOfEvent(parsed)}, and a checkpoint of size ${checkpoint.size} of a log that has ${toHex(leaf)} there.`,
    logId: parsed.logId,
    receiptKeys: [parsed.keyid],
    checkpointKeys: [key],
    witnessKeys: [],
  };
}

function verifyMissing(proof: ProofOf<'receipt-and-checkpoint'>): ProvedMisbehaviour {
  const parsed = verifyKeptReceipt(proof.receipt);
  const { key, checkpoint } = openWith(proof.keys, proof.checkpoint);
  requireLog(parsed, checkpoint);
  const entries = base64.decode(proof.entries);
  requireTrue(entries.length === checkpoint.size * HASH_BYTES, 'it does not contain all entries of the checkpoint');
  requireTrue(isSame(rootOfEntries(entries), checkpoint.root), 'the entries do not match the checkpoint');
  requireTrue(!isAmong(entries, parsed.leaf), 'the entry of the receipt is among those of the checkpoint');
  const due = parsed.created + COVERED_SECONDS_MAX;
  const witnesses = proof.witnesses.filter((witness) => (cosignedBy(witness, checkpoint) ?? 0n) >= due);
  const { laterLine } = proof;
  const isLater = laterLine !== null && isDecidedFrom(due, laterLine) && isAmong(entries, leafOf(laterLine));
  requireTrue(
    isLater || witnesses.length > 0,
    `nothing shows that the checkpoint is ${COVERED_SECONDS_MAX} s later than the receipt`,
  );
  return {
    sentence: `The service has signed a receipt that promises the leaf ${toHex(parsed.leaf)} for ${nameOfEvent(parsed)}, and at least ${COVERED_SECONDS_MAX} s later a checkpoint of size ${checkpoint.size} of a log that does not have it.`,
    logId: parsed.logId,
    receiptKeys: [parsed.keyid],
    checkpointKeys: [key],
    witnessKeys: witnesses,
  };
}

function verifyTwoLines({ lines, tlogProofs, keys }: ProofOf<'two-lines'>): ProvedMisbehaviour {
  const open = (line: string, tlogProof: string) => {
    const position = positionOfLine(line, Number.POSITIVE_INFINITY);
    if (position === undefined) throw new Error('a line is not an event record');
    const parsed = parseTlogProof(tlogProof);
    const { key, checkpoint } = openWith(keys, parsed?.note ?? '');
    const leaf = leafOf(line);
    requireTrue(verifyTlogProof(tlogProof, leaf, toKey(key)) !== undefined, 'a tlog-proof does not match its line');
    return { position, leaf, index: parsed?.index, key, origin: checkpoint.origin };
  };
  const [one, other] = [open(lines[0], tlogProofs[0]), open(lines[1], tlogProofs[1])];
  requireTrue(one.origin === other.origin, 'the tlog-proofs are for different logs');
  const isSameEvent = one.position.stream === other.position.stream && one.position.eventId === other.position.eventId;
  requireTrue(isSameEvent, 'the lines are for different events');
  requireTrue(!isSame(one.leaf, other.leaf) || one.index !== other.index, 'both lines are one entry of the log');
  return {
    sentence: `The service has signed a log that has ${nameOfEvent(one.position)} twice: with the leaf ${toHex(one.leaf)} at index ${one.index}, and with ${toHex(other.leaf)} at index ${other.index}.`,
    logId: logIdOf(one.origin),
    receiptKeys: [],
    checkpointKeys: [...new Set([one.key, other.key])],
    witnessKeys: [],
  };
}

function verifyTwoCheckpoints({ checkpoints, path, keys }: ProofOf<'two-checkpoints'>): ProvedMisbehaviour {
  const [smaller, larger] = [openWith(keys, checkpoints[0]), openWith(keys, checkpoints[1])];
  const [from, to] = [smaller.checkpoint, larger.checkpoint];
  requireTrue(from.origin === to.origin, 'the checkpoints are for different logs');
  const root = from.size === to.size ? to.root : rootWithin(to, from.size, path.map(base64.decode));
  requireTrue(root !== undefined, 'the path does not match the larger checkpoint');
  requireTrue(!isSame(root ?? to.root, from.root), 'the log of the larger checkpoint extends that of the smaller one');
  return {
    sentence: `The service has signed a checkpoint of size ${from.size} with the root ${base64.encode(from.root)}, and one of size ${to.size} of a log whose root at size ${from.size} is ${base64.encode(root ?? to.root)}.`,
    logId: logIdOf(from.origin),
    receiptKeys: [],
    checkpointKeys: [...new Set([smaller.key, larger.key])],
    witnessKeys: [],
  };
}

function verifyStubAndLine({ stub: text, line }: ProofOf<'stub-and-line'>): ProvedMisbehaviour {
  const stub = openStub(text);
  const { leaf, keyid, log } = stub.withheld;
  requireTrue(toHex(leafOf(line)) === leaf, 'the line does not have the leaf of the stub');
  requireTrue(originalProblem(line, stub) !== undefined, 'the stub follows from the line');
  return provedByStubs(
    `The service has signed a stub of ${nameOfEvent(eventName(stub))} with the leaf ${leaf}, and the line with this leaf differs from it in more than the texts that may be withheld.`,
    { logId: log, receiptKeys: [keyid] },
  );
}

function verifyTwoStubs({ stubs }: ProofOf<'two-stubs'>): ProvedMisbehaviour {
  const [one, other] = [openStub(stubs[0]), openStub(stubs[1])];
  const isSameEvent =
    nameOfEvent(eventName(one)) === nameOfEvent(eventName(other)) && one.withheld.log === other.withheld.log;
  requireTrue(isSameEvent, 'the stubs are for different events');
  requireTrue(contradicts(one, other), 'the stubs do not contradict each other');
  return provedByStubs(
    `The service has signed two stubs of ${nameOfEvent(eventName(one))} that contradict each other.`,
    {
      logId: one.withheld.log,
      receiptKeys: [...new Set([one.withheld.keyid, other.withheld.keyid])],
    },
  );
}

function provedByStubs(
  sentence: string,
  signers: Pick<ProvedMisbehaviour, 'logId' | 'receiptKeys'>,
): ProvedMisbehaviour {
  return { sentence, ...signers, checkpointKeys: [], witnessKeys: [] };
}

function eventName({ chamberId, did, eventId }: ForumEvent) {
  return { stream: chamberId ?? did ?? '', eventId };
}

/** Computes the root of the first `from` leaves from the path; undefined if the path does not match the checkpoint. */
function rootWithin(
  { size, root }: SignedCheckpoint,
  from: number,
  path: readonly Uint8Array[],
): Uint8Array | undefined {
  const roots = consistencyRoots({ from, to: size, path, hashNodes: TREE.hashNodes });
  return roots && isSame(roots.to, root) ? roots.from : undefined;
}

/**
 * Returns the proof, from the tiles of the larger tree, that the log of the larger checkpoint does not extend the log of the smaller one;
 * undefined if it does extend it. Throws an Error if the tiles don't match the larger checkpoint.
 */
export async function forkProofByTiles(
  [smaller, larger]: readonly [SignedCheckpoint, SignedCheckpoint],
  keys: readonly string[],
  readTile: (tile: Tile) => Promise<Uint8Array>,
): Promise<Misbehaviour | undefined> {
  // An empty tree is a prefix of every tree.
  if (smaller.size === 0 && larger.size > 0) return undefined;
  const path = smaller.size === larger.size ? [] : await pathFromTiles(smaller.size, larger.size, readTile);
  const root = smaller.size === larger.size ? larger.root : rootWithin(larger, smaller.size, path);
  if (root === undefined) throw new Error('the tiles do not match the checkpoint');
  if (isSame(root, smaller.root)) return undefined;
  return {
    format: MISBEHAVIOUR,
    kind: 'two-checkpoints',
    checkpoints: [formatNote(smaller.note), formatNote(larger.note)],
    path: path.map((hash) => base64.encode(hash)),
    keys: [...keys],
  };
}

async function pathFromTiles(from: number, to: number, readTile: (tile: Tile) => Promise<Uint8Array>) {
  const readTiles: ReadTiles = (refs) => Promise.all(refs.map((ref) => readTile(tileAt(ref, to) as Tile)));
  const proof = await consistencyProof(from, to, nodesOfTiles(readTiles), TREE.hashNodes);
  return isPerfect(from) ? [await rootOfTiles(from, readTiles), ...proof] : proof;
}

interface Opened {
  /** The verifier key that matches the signature. */
  readonly key: string;
  readonly checkpoint: SignedCheckpoint;
}

function openWith(keys: readonly string[], note: string): Opened {
  for (const key of keys) {
    const checkpoint = openCheckpoint(note, toKey(key));
    if (checkpoint !== undefined) return { key, checkpoint };
  }
  throw new Error('a checkpoint is not signed by any of the keys');
}

function toKey(text: string) {
  const key = parseVerifierKey(text);
  if (key?.type === NOTE_KEY_TYPES.ed25519) return key;
  throw new Error(`${text} is not a verifier key of a log`);
}

function requireLog({ logId }: ParsedReceipt, { origin }: SignedCheckpoint): void {
  requireTrue(logIdOf(origin) === logId, `the receipt belongs to log ${logId}, but the checkpoint to ${origin}`);
}

/** The origin is `<host>/log/<logId>`. */
export function logIdOf(origin: string): string {
  return origin.slice(origin.lastIndexOf('/') + 1);
}

/** The time of the witness's cosignature, in seconds since 1970; undefined if there is none. */
function cosignedBy(witness: string, { note }: SignedCheckpoint): bigint | undefined {
  const key = parseVerifierKey(witness);
  if (key?.type !== NOTE_KEY_TYPES.cosignature) return undefined;
  const found = signatureBy(key, note);
  return found && parseCosignature(found.bytes)?.at;
}

/** Whether the `ts` of the line is at least this time, in seconds since 1970. */
function isDecidedFrom(seconds: number, line: string): boolean {
  const { ts } = Object(parseJson(line));
  return instantOf(ts) >= seconds * 1_000;
}

function leafOf(line: string): Uint8Array {
  return lineLeaf(new TextEncoder().encode(line));
}

/** Computes the root over concatenated 32-byte entries. */
function rootOfEntries(entries: Uint8Array): Uint8Array {
  const tree = new GrowingTree(0, [], TREE);
  for (let at = 0; at < entries.length; at += HASH_BYTES) {
    tree.add(entries.subarray(at, at + HASH_BYTES));
    tree.takeFullTiles();
  }
  return tree.root();
}

function isAmong(entries: Uint8Array, leaf: Uint8Array): boolean {
  for (let at = 0; at < entries.length; at += HASH_BYTES)
    if (isSame(entries.subarray(at, at + HASH_BYTES), leaf)) return true;
  return false;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function requireTrue(condition: boolean, problem: string): void {
  if (!condition) throw new Error(problem);
}
