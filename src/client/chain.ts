// The chain of a chamber's lines: each names the leaf hash of the one before it, so that a follower sees every alteration.
import { leafHash } from '../crypto/merkle.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Hex, NO_PREVIOUS } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

/** A place in a chamber's log: the event read last, with its leaf hash, by which the next one is checked. */
export interface Cursor {
  readonly eventId: number;
  /** null where it is not known: then the next line's `prev` is taken on trust. */
  readonly leaf: Hex | null;
}

export interface VerifiedLine extends Cursor {
  readonly leaf: Hex;
  /** The canonical line as stored, without a line break. */
  readonly line: string;
  readonly event: ChamberEvent;
}

export const START: Cursor = { eventId: 0, leaf: NO_PREVIOUS };

const encoder = new TextEncoder();

/** The line as the one that follows the cursor, or throws CLIENT_ERR_CHAIN. */
export function follow(cursor: Cursor, chamberId: number, line: string): VerifiedLine {
  const event = parse(line);
  const due = cursor.eventId + 1;
  if (event.eventId !== due) throw broken(`event ${due} was due, but ${String(event.eventId)} came`);
  if (event.chamberId !== chamberId) throw broken(`event ${due} belongs to chamber ${String(event.chamberId)}`);
  if (cursor.leaf !== null && event.prev !== cursor.leaf) {
    throw broken(`event ${due} does not follow event ${cursor.eventId} as it was read: its prev is another hash`);
  }
  return { eventId: due, leaf: toHex(leafHash(encoder.encode(line))), line, event };
}

function parse(line: string): ChamberEvent {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value as ChamberEvent;
  } catch {
    // Told below.
  }
  throw broken('a line is not an event');
}

function broken(what: string): ClientError {
  return new ClientError('CLIENT_ERR_CHAIN', `the chamber's log is broken: ${what}`);
}
