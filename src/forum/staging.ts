// Stages the next event of a stream: its line, the state after it, and the log entry. New events and events read from the log take the
// same steps. The functions are pure, and do not validate events, because the decision has already been made.
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { listingsOf } from '../../projections/listings.ts';
import { encodeState, isSnapshotDue, SNAPSHOT_EVERY_EVENTS } from '../../projections/snapshot.ts';
import { type Accumulator, appendLeaf, EMPTY_TREE } from '../crypto/merkle.ts';
import { storedLeaf } from '../crypto/stub.ts';
import type { LogEntry, Snapshot } from '../log/log.ts';
import { moveOfEvent } from '../moves/registry.ts';
import {
  type AccountEvent,
  type AccountFact,
  type ChamberEvent,
  type ForumEvent,
  fromLine,
  isMove,
  toLine,
} from '../vocabulary/events.ts';
import { fromHex, type Hex, type Millis, NO_PREVIOUS, toHex, toTimestamp } from '../vocabulary/values.ts';
import type { Caller } from './commands.ts';

/** Immutable: each event creates a new object. */
export interface Chamber {
  readonly state: ChamberState;
  /** The Merkle tree of the moves: events 1 to state.moveCount. */
  readonly tree: Accumulator;
  /** The leaf hash of the last event, which is `prev` of the next event. */
  readonly headHash: Hex;
  /** The estimated memory use of the state. */
  readonly bytes: number;
}

export interface Account {
  readonly state: AccountState;
  readonly headHash: Hex;
  readonly bytes: number;
}

export type State = Chamber | Account;

/** The author of an event; `did` is null for the service itself, which may need to hold a lease. */
export type Author = Pick<Caller, 'request' | 'signature'> & {
  readonly did: string | null;
  readonly lease?: string | undefined;
};

export interface StagingContext {
  readonly author: Author;
  /** The author's account if the decision read it; the event then refers to the account's head. */
  readonly account?: AccountState;
  /** The event's `ts`, used for the decision. */
  readonly at: Millis;
}

export interface Staged<After> {
  readonly after: After;
  readonly event: ForumEvent;
  readonly entry: LogEntry;
}

/** `before` is undefined for a new chamber. */
export function stageChamberEvent(
  before: Chamber | undefined,
  chamberId: number,
  { type, payload }: Pick<ChamberEvent, 'type' | 'payload'>,
  { author: { did, request, signature, lease }, account, at }: StagingContext,
): Staged<Chamber> {
  requireNotBefore(before, at);
  // The types do not express that type and payload come from the same move.
  const event = {
    eventId: (before?.state.lastEventId ?? 0) + 1,
    chamberId,
    type,
    did,
    ts: toTimestamp(at),
    prev: before?.headHash ?? NO_PREVIOUS,
    payload,
    request,
  } as ChamberEvent;
  const line = Buffer.from(toLine(event));
  const { chamber, nodes } = applyChamberEvent(before, event, { leaf: storedLeaf(line), lineBytes: line.length });
  const { state } = chamber;
  const mayBeDue = event.eventId % SNAPSHOT_EVERY_EVENTS === 0;
  const entry = {
    stream: chamberId,
    eventId: event.eventId,
    at,
    line,
    signature,
    nodes,
    listings: listingsOf(before?.state ?? null, state),
    snapshot: mayBeDue && isSnapshotDue(state) ? snapshotOf(chamber) : undefined,
    lease,
    account,
  };
  return { after: chamber, event, entry };
}

/** `before` is undefined for a new key. */
export function stageAccountEvent(
  before: Account | undefined,
  { type, payload }: AccountFact,
  { did, request, signature }: Omit<Caller, 'times'>,
  { at }: Pick<StagingContext, 'at'>,
): Staged<Account> {
  requireNotBefore(before, at);
  const eventId = (before?.state.lastEventId ?? 0) + 1;
  const prev = before?.headHash ?? NO_PREVIOUS;
  const text = toLine({
    eventId,
    chamberId: null,
    did,
    ts: toTimestamp(at),
    prev,
    request,
    type,
    payload,
  } as AccountEvent);
  // The event is parsed from the line, so that properties have the same order as after a retry or a restart.
  const event = fromLine(text) as AccountEvent;
  const line = Buffer.from(text);
  const after = applyAccountEvent(before, event, storedLeaf(line));
  const snapshot = isSnapshotDue(after.state) ? snapshotOf(after) : undefined;
  const entry = { stream: did, eventId, at, line, signature, nodes: null, listings: [], snapshot };
  return { after, event, entry };
}

function requireNotBefore(before: State | undefined, at: Millis): void {
  if (before !== undefined && at < before.state.lastAt)
    throw new Error(`an event at ${toTimestamp(at)} can't follow one at ${toTimestamp(before.state.lastAt)}`);
}

/** Returns the chamber after the event, and the tree nodes that the event completes (null for service events). */
export function applyChamberEvent(
  before: Chamber | undefined,
  event: ChamberEvent,
  { leaf, lineBytes }: { readonly leaf: Uint8Array; readonly lineBytes: number },
): { readonly chamber: Chamber; readonly nodes: Uint8Array | null } {
  const isLeaf = isMove(event);
  const tree = before?.tree ?? EMPTY_TREE;
  const grown = isLeaf ? appendLeaf(tree, leaf) : { tree, nodes: null };
  const takesMemory = !(isLeaf && moveOfEvent[event.type].isTransient);
  const state = evolveChamber(before?.state ?? null, event);
  const newIdeas = state.ideas.length - (before?.state.ideas.length ?? 0);
  const bytes =
    (before?.bytes ?? STATE_BYTES_MIN) +
    (takesMemory ? MEMORY_BYTES_PER_LINE_BYTE * lineBytes : 0) +
    newIdeas * state.members.length * BYTES_PER_STANCE;
  return { chamber: { state, tree: grown.tree, headHash: toHex(leaf), bytes }, nodes: grown.nodes };
}

export function applyAccountEvent(before: Account | undefined, event: AccountEvent, leaf: Uint8Array): Account {
  const state = evolveAccount(before?.state ?? null, event);
  return { state, headHash: toHex(leaf), bytes: accountBytes(state) };
}

/** The memory use of a state without its texts: objects, maps and the cache entry. */
const STATE_BYTES_MIN = 2_048;
/** In memory, a string takes up to two bytes per character. */
const MEMORY_BYTES_PER_LINE_BYTE = 2;

/** Every member may take a stance on every idea. */
const BYTES_PER_STANCE = 64;

/** The estimate for a chamber restored from a snapshot. */
export function restoredBytes(text: string): number {
  return STATE_BYTES_MIN + MEMORY_BYTES_PER_LINE_BYTE * Buffer.byteLength(text);
}

const BYTES_PER_CHARACTER = 2;
const BYTES_PER_STRING = 32;

/** Counts the state, not the lines: replaced texts take no memory. */
export function accountBytes({ personality, registeredPersonality }: AccountState): number {
  let bytes = STATE_BYTES_MIN;
  for (const text of [personality, registeredPersonality].flatMap((texts) => Object.values(texts).flat())) {
    bytes += BYTES_PER_STRING + BYTES_PER_CHARACTER * text.length;
  }
  return bytes;
}

export function snapshotOf({ state, headHash }: State): Snapshot {
  return { eventId: state.lastEventId, leaf: fromHex(headHash), state: encodeState(state) };
}
