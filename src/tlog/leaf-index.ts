// The service's unsigned index, which names the event of each leaf. In an honest index, each event of a stream has one leaf, in order and
// without gaps, and the leaf is the hash of the event's line.
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import { parseJson } from '../vocabulary/json.ts';

/** A chamber id, or the DID of an account. */
export type Stream = number | string;

export interface IndexedLeaf {
  readonly index: number;
  readonly stream: Stream;
  readonly eventId: number;
}

const DID = /^did:key:[A-Za-z0-9]{1,200}$/;
const ROW_VALUES_MAX = 16;

/** Returns undefined for a malformed line. */
export function parseIndexedLeaf(line: string): IndexedLeaf | undefined {
  const row = parseRow(line);
  const { index, chamberId, did, eventId } = Object(row) as Readonly<Record<string, unknown>>;
  if (!isCount(index, 0) || !isCount(eventId, 1)) return undefined;
  if (isCount(chamberId, 1) && did === null) return { index, stream: chamberId, eventId };
  return chamberId === null && typeof did === 'string' && DID.test(did) ? { index, stream: did, eventId } : undefined;
}

function parseRow(line: string): unknown {
  try {
    return parseJson(line, ROW_VALUES_MAX);
  } catch {
    return undefined;
  }
}

function isCount(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

export function nameOfEvent({ stream, eventId }: Pick<IndexedLeaf, 'stream' | 'eventId'>): string {
  return `event ${eventId} of ${nameOfStream(stream)}`;
}

export function nameOfStream(stream: Stream): string {
  return typeof stream === 'number' ? `chamber ${stream}` : stream;
}

/** Whether the stream is an account with a key that the service accepts. */
export function isAccountStream(stream: Stream): stream is string {
  const publicKey = typeof stream === 'string' ? parseDid(stream) : undefined;
  return publicKey !== undefined && weaknessOf(publicKey) === undefined;
}

/** Checks a leaf that follows `lastEventId` events of its stream. Returns the problem, if there is one. */
export function positionProblem(leaf: IndexedLeaf, lastEventId: number): string | undefined {
  const { index, eventId } = leaf;
  if (eventId <= lastEventId) return `the log has ${nameOfEvent(leaf)} twice: again at index ${index}`;
  if (eventId === lastEventId + 1) return undefined;
  const due = nameOfEvent({ ...leaf, eventId: lastEventId + 1 });
  return `the log has ${nameOfEvent(leaf)} at index ${index} without ${due} before it`;
}

/** The members of a line that state its position. */
export interface LinePosition {
  readonly stream: Stream;
  readonly eventId: number;
  readonly prev: unknown;
  readonly ts: unknown;
  /** Whether only releases that publish every line write such a line. */
  readonly isFromLaterRelease: boolean;
}

/** Returns undefined if the line is not an event record. */
export function positionOfLine(line: string, valuesMax: number): LinePosition | undefined {
  let record: unknown;
  try {
    record = parseJson(line, valuesMax);
  } catch {
    return undefined;
  }
  const { chamberId, did, eventId, prev, ts, payload, type } = Object(record) as Readonly<Record<string, unknown>>;
  const stream = chamberId ?? did;
  const isNamed = isCount(stream, 1) || typeof stream === 'string';
  if (!isNamed || !isCount(eventId, 1)) return undefined;
  const { serviceKeys, accountEventId, walletProof } = Object(payload) as Readonly<Record<string, unknown>>;
  const isMarked = [serviceKeys, accountEventId, walletProof].some((member) => member !== undefined);
  return { stream, eventId, prev, ts, isFromLaterRelease: isMarked || type === 'agent.retired' };
}
