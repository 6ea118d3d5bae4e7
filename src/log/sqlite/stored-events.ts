// The events as a database file holds them, read by programs other than the service and trusted in nothing: each is checked
// against its stream before it, and all that was stored beside a line must follow from the line. Whether the move was allowed
// and its signature verifies is the auditor's question.
import { isUtf8 } from 'node:buffer';
import Database from 'better-sqlite3';
import { type AccountState, evolveAccount } from '../../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { parseSignature, signatureKey } from '../../crypto/http-signature.ts';
import { type Accumulator, appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../../crypto/merkle.ts';
import {
  type AccountEvent,
  type ChamberEvent,
  type ForumEvent,
  fromLine,
  isMove,
  toLine,
} from '../../vocabulary/events.ts';
import { type Hex, type Millis, NO_PREVIOUS, toHex, toTimestamp } from '../../vocabulary/values.ts';
import type { StreamId } from '../log.ts';
import { reasonOf, requireOneName } from './database-file.ts';
import { requireOwnTables, SCHEMA_VERSION } from './schema.ts';

export interface StoredEvent {
  readonly position: number;
  readonly chamber_id: number | null;
  readonly account: string | null;
  readonly event_id: number;
  /** Any bytes. */
  readonly line: Buffer;
  readonly signature: Buffer | null;
  readonly nodes: Buffer | null;
}

/** Opens the file read-only, also beside a running service; throws an Error of one line. */
export function openReader(path: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    // Even a reader discards a write-ahead log that has lost its file.
    requireOneName(path);
    db = new Database(path, { readonly: true, fileMustExist: true });
    const version = db.pragma('user_version', { simple: true }) as number;
    if (version < 1 || version > SCHEMA_VERSION) {
      throw new Error(`the file has schema ${version}, and this version reads schemas 1 to ${SCHEMA_VERSION}`);
    }
    requireOwnTables(db);
    return db;
  } catch (error) {
    db?.close();
    throw new Error(`cannot read the database ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** The events of all chambers, chamber by chamber in the order of their ids. */
export function chamberEvents(db: Database.Database): Generator<StoredEvent> {
  return inOrder(db, 'chamber_id');
}

/** The events of all accounts, account by account. */
export function accountEvents(db: Database.Database): Generator<StoredEvent> {
  return inOrder(db, 'account');
}

/** Without the index, which is not trusted. Only the numbers are sorted, not the lines. */
function* inOrder(db: Database.Database, stream: 'chamber_id' | 'account'): Generator<StoredEvent> {
  const positions = db.prepare<[], number>(
    `SELECT position FROM events WHERE ${stream} IS NOT NULL ORDER BY ${stream}, event_id, position`,
  );
  const event = db.prepare<[number], StoredEvent>(
    `SELECT position, chamber_id, account, event_id, CAST(line AS BLOB) AS line, signature, nodes
     FROM events WHERE position = ?`,
  );
  for (const position of positions.pluck().iterate()) yield event.get(position) as StoredEvent;
}

export function streamOf({ chamber_id, account }: Pick<StoredEvent, 'chamber_id' | 'account'>): StreamId {
  return chamber_id ?? account ?? '';
}

export function readMeta(db: Database.Database, name: string): string | undefined {
  return db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name);
}

/** A stream up to its latest sound event. */
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

/** The stream with the event added; throws an Error that names the fault. */
export function verifyEvent(before: VerifiedStream, stored: StoredEvent): VerifiedStream {
  const event = parseStoredLine(stored.line);
  requireSequence(event, stored, before);
  requireSignature(event, stored.signature);
  const leaf = leafHash(stored.line);
  const tree = growTree(event, leaf, before.tree, stored.nodes);
  requireRoot(event, tree);
  const folded =
    event.chamberId === null
      ? { chamber: null, account: evolveAccount(before.account, event as AccountEvent) }
      : { chamber: evolveChamber(before.chamber, event as ChamberEvent), account: null };
  return { event, eventId: event.eventId, headHash: toHex(leaf), at: Date.parse(event.ts), tree, ...folded };
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
  if (event.chamberId !== stored.chamber_id) throw new Error(`chamberId is ${event.chamberId}, not the column's`);
  if (stored.account !== null && event.did !== stored.account) throw new Error(`did is not the account's`);
  if (event.prev !== before.headHash) throw new Error('prev is not the hash of the event before it');
  const at = Date.parse(event.ts);
  if (Number.isNaN(at) || toTimestamp(at) !== event.ts) throw new Error('ts is not a timestamp with milliseconds');
  if (at < before.at) throw new Error('ts is earlier than that of the event before it');
}

/** Registrations are known by the table `registrations`; those of schema 3 and before, without their body, by the column too. */
function requireSignature({ type, request }: ForumEvent, stored: Buffer | null): void {
  const isHidden = request === null || (type === 'agent.registered' && request.body !== null);
  const expected = isHidden ? null : Buffer.from(signatureKey(parseSignature(request)), 'latin1');
  const isSame = expected === null || stored === null ? expected === stored : expected.equals(stored);
  if (!isSame) throw new Error('column signature does not belong to the request in the line');
}

function growTree(event: ForumEvent, leaf: Uint8Array, tree: Accumulator, stored: Buffer | null): Accumulator {
  const isLeaf = event.chamberId !== null && isMove(event);
  const grown = isLeaf ? appendLeaf(tree, leaf) : { tree, nodes: null };
  const isSame = grown.nodes === null || stored === null ? grown.nodes === stored : stored.equals(grown.nodes);
  if (!isSame) throw new Error('column nodes does not match what the event adds to the Merkle tree');
  return grown.tree;
}

function requireRoot(event: ForumEvent, tree: Accumulator): void {
  if (event.type !== 'chamber.committed') return;
  const { merkleRoot, eventCount } = event.payload;
  if (eventCount !== tree.size || merkleRoot !== toHex(rootOf(tree))) {
    throw new Error(`the committed root is not the root over the ${tree.size} moves before it`);
  }
}
