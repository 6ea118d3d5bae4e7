// One stored event checked against everything before it in its stream: what the service wrote beside the line must follow
// from the line. Whether the move was allowed and its signature verifies is the auditor's question.
import { isUtf8 } from 'node:buffer';
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { parseSignature } from '../crypto/http-signature.ts';
import { type Accumulator, appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../crypto/merkle.ts';
import { signatureKey } from '../crypto/signature-key.ts';
import {
  type AccountEvent,
  type ChamberEvent,
  type ForumEvent,
  fromLine,
  isMove,
  toLine,
} from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Hex, type Millis, NO_PREVIOUS, toTimestamp } from '../vocabulary/values.ts';
import type { StoredEvent } from './stored-events.ts';

/** A stream up to an event that was found sound. */
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

/** The stream with the event; throws an Error that says what is wrong with it. */
export function verifyEvent(before: VerifiedStream, stored: StoredEvent): VerifiedStream {
  const event = parseLine(stored.line);
  requirePlace(event, stored, before);
  requireSignature(event, stored.signature);
  const leaf = leafHash(stored.line);
  const tree = growTree(event, leaf, before.tree, stored.nodes);
  requireRoot(event, tree);
  const common = { event, eventId: event.eventId, headHash: toHex(leaf), at: Date.parse(event.ts), tree };
  return { ...common, ...fold(before, event) };
}

function parseLine(line: Buffer): ForumEvent {
  if (!isUtf8(line)) throw new Error('the line is not UTF-8');
  const text = line.toString();
  const event = parseJson(text);
  if (typeof event !== 'object' || event === null) throw new Error('the line is not an object');
  if (toLine(event) !== text) throw new Error('the line is not in canonical form');
  return event;
}

function parseJson(text: string): ForumEvent {
  try {
    return fromLine(text);
  } catch {
    throw new Error('the line is not JSON');
  }
}

function requirePlace(event: ForumEvent, stored: StoredEvent, before: VerifiedStream): void {
  const expected = before.eventId + 1;
  if (stored.event_id !== expected) throw new Error(`column event_id is ${stored.event_id}, not ${expected}`);
  if (event.eventId !== expected) throw new Error(`eventId is ${event.eventId}, not ${expected}`);
  if (event.chamberId !== stored.chamber_id) throw new Error(`chamberId is ${event.chamberId}, not the column's`);
  if (stored.account !== null && event.did !== stored.account) throw new Error(`did is not the account's`);
  if (event.prev !== before.headHash) throw new Error('prev is not the hash of the event before it');
  const at = Date.parse(event.ts);
  if (Number.isNaN(at) || toTimestamp(at) !== event.ts) throw new Error('ts is not a timestamp with milliseconds');
  if (at < before.at) throw new Error('ts lies before that of the event before it');
}

function requireSignature({ request }: ForumEvent, stored: Buffer | null): void {
  const expected = request === null ? null : Buffer.from(signatureKey(parseSignature(request)), 'latin1');
  const isSame = expected === null || stored === null ? expected === stored : expected.equals(stored);
  if (!isSame) throw new Error('column signature does not belong to the request in the line');
}

function growTree(event: ForumEvent, leaf: Uint8Array, tree: Accumulator, stored: Buffer | null): Accumulator {
  const isLeaf = event.chamberId !== null && isMove(event);
  const grown = isLeaf ? appendLeaf(tree, leaf) : { tree, nodes: null };
  const isSame = grown.nodes === null || stored === null ? grown.nodes === stored : stored.equals(grown.nodes);
  if (!isSame) throw new Error('column nodes is not what the event adds to the Merkle tree');
  return grown.tree;
}

function requireRoot(event: ForumEvent, tree: Accumulator): void {
  if (event.type !== 'chamber.committed') return;
  const { merkleRoot, eventCount } = event.payload;
  if (eventCount !== tree.size || merkleRoot !== toHex(rootOf(tree))) {
    throw new Error(`the committed root is not the root over the ${tree.size} moves before it`);
  }
}

function fold({ chamber, account }: VerifiedStream, event: ForumEvent) {
  return event.chamberId === null
    ? { chamber: null, account: evolveAccount(account, event as AccountEvent) }
    : { chamber: evolveChamber(chamber, event as ChamberEvent), account: null };
}
