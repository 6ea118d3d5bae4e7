// Verifies the stored events of a stream without trusting them: each event is checked against the stream before it, and everything stored
// with a line must follow from the line. The auditor decides whether moves were allowed and signatures verify.
import { isUtf8 } from 'node:buffer';
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { hiddenSignatureKey, parseSignature, signatureKey } from '../crypto/http-signature.ts';
import { type Accumulator, appendLeaf, EMPTY_TREE, rootOf } from '../crypto/merkle.ts';
import { storedLeaf } from '../crypto/stub.ts';
import {
  type AccountEvent,
  type ChamberEvent,
  type ForumEvent,
  fromLine,
  isMove,
  toLine,
} from '../vocabulary/events.ts';
import { type Hex, instantOf, type Millis, NO_PREVIOUS, toHex, toTimestamp } from '../vocabulary/values.ts';
import type { StreamId } from './stream-id.ts';

/** A finding of fsck. */
export interface Fault {
  /** Null if the fault is not in an event, or the store has no positions. */
  readonly position: number | null;
  readonly stream: StreamId | null;
  readonly eventId: number | null;
  readonly problem: string;
}

export interface FsckSummary {
  readonly logId: string;
  readonly events: number;
  readonly chambers: number;
  readonly accounts: number;
  readonly faults: number;
}

export interface StoredEvent {
  readonly stream: StreamId;
  readonly event_id: number;
  /** May be damaged, and so contain any bytes. */
  readonly line: Buffer;
  readonly signature: Buffer | null;
  readonly nodes: Buffer | null;
}

/** The state of a stream after its latest valid event. */
export interface VerifiedStream {
  readonly event: ForumEvent | null;
  readonly eventId: number;
  readonly headHash: Hex;
  readonly at: Millis;
  readonly tree: Accumulator;
  readonly chamber: ChamberState | null;
  readonly account: AccountState | null;
}

export const EMPTY_STREAM: VerifiedStream = {
  event: null,
  eventId: 0,
  headHash: NO_PREVIOUS,
  at: 0,
  tree: EMPTY_TREE,
  chamber: null,
  account: null,
};

/** Verifies the event and adds it to the stream. Throws an Error that names the fault. */
export function verifyEvent(before: VerifiedStream, stored: StoredEvent): VerifiedStream {
  const event = parseStoredLine(stored.line);
  requireSequence(event, stored, before);
  requireSignature(event, stored.signature);
  const leaf = storedLeaf(stored.line);
  const tree = growTree(event, leaf, before.tree, stored.nodes);
  requireRoot(event, tree);
  const folded =
    event.chamberId === null
      ? { chamber: null, account: evolveAccount(before.account, event as AccountEvent) }
      : { chamber: evolveChamber(before.chamber, event as ChamberEvent), account: null };
  return { event, eventId: event.eventId, headHash: toHex(leaf), at: instantOf(event.ts), tree, ...folded };
}

/**
 * Returns the hiddenSignatureKey, in bytes, of a registration with a complete request; undefined for other events. If the table
 * `registrations` lacked the key, the request could be replayed.
 */
export function registrationKey(event: ForumEvent | null): Buffer | undefined {
  if (event?.type !== 'agent.registered' || !event.request?.body) return undefined;
  return Buffer.from(hiddenSignatureKey(signatureKey(parseSignature(event.request))), 'latin1');
}

function parseStoredLine(line: Buffer): ForumEvent {
  if (!isUtf8(line)) throw new Error('the line is not UTF-8');
  const text = line.toString();
  let event: ForumEvent;
  try {
    event = fromLine(text);
  } catch {
    throw new Error('the line is not JSON');
  }
  if (typeof event !== 'object' || event === null) throw new Error('the line is not an object');
  if (toLine(event) !== text) throw new Error('the line is not in canonical form');
  return event;
}

function requireSequence(event: ForumEvent, stored: StoredEvent, before: VerifiedStream): void {
  const expected = before.eventId + 1;
  if (stored.event_id !== expected) throw new Error(`column event_id is ${stored.event_id}, not ${expected}`);
  if (event.eventId !== expected) throw new Error(`eventId is ${event.eventId}, not ${expected}`);
  const { stream } = stored;
  const isAccount = typeof stream === 'string';
  if (event.chamberId !== (isAccount ? null : stream))
    throw new Error(`chamberId is ${event.chamberId}, not the column's`);
  if (isAccount && event.did !== stream) throw new Error(`did is not the account's`);
  if (event.prev !== before.headHash) throw new Error('prev is not the hash of the previous event');
  const at = instantOf(event.ts);
  if (Number.isNaN(at) || toTimestamp(at) !== event.ts) throw new Error('ts is not a timestamp with milliseconds');
  if (at < before.at) throw new Error('ts is earlier than that of the previous event');
}

/** Signatures of registrations are in the table `registrations`. Those of schema 3 and earlier, without a body, are also in the column. */
function requireSignature({ type, request }: ForumEvent, stored: Buffer | null): void {
  const isHidden = request === null || (type === 'agent.registered' && request.body !== null);
  const expected = isHidden ? null : Buffer.from(signatureKey(parseSignature(request)), 'latin1');
  const isSame = expected === null || stored === null ? expected === stored : expected.equals(stored);
  if (!isSame) throw new Error('column signature does not match the request in the line');
}

function growTree(event: ForumEvent, leaf: Uint8Array, tree: Accumulator, stored: Buffer | null): Accumulator {
  const isLeaf = event.chamberId !== null && isMove(event);
  const grown = isLeaf ? appendLeaf(tree, leaf) : { tree, nodes: null };
  const isSame = grown.nodes === null || stored === null ? grown.nodes === stored : stored.equals(grown.nodes);
  if (!isSame) throw new Error('column nodes does not match the nodes that the event adds to the Merkle tree');
  return grown.tree;
}

function requireRoot(event: ForumEvent, tree: Accumulator): void {
  if (event.type !== 'chamber.committed') return;
  const { merkleRoot, eventCount } = event.payload;
  if (eventCount !== tree.size || merkleRoot !== toHex(rootOf(tree))) {
    throw new Error(`the committed root is not the root of the ${tree.size} preceding moves`);
  }
}
