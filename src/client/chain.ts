// The hash chain of a chamber's lines: each line names the leaf hash of the previous one, so a reader detects any change.
import { leafHash } from '../crypto/merkle.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Hex, NO_PREVIOUS } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

/** A position in a chamber's log: the last event read, with its leaf hash, by which the next line is checked. */
export interface Cursor {
  readonly eventId: number;
  /** null if not known: then the next line's `prev` is not checked. */
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

/** Checks that the line is the next one after the cursor; throws CLIENT_ERR_CHAIN if not. */
export function follow(cursor: Cursor, chamberId: number, line: string): VerifiedLine {
  const event = parse(line);
  const expected = cursor.eventId + 1;
  if (event.eventId !== expected) throw broken(`expected event ${expected}, received ${String(event.eventId)}`);
  if (event.chamberId !== chamberId) throw broken(`event ${expected} belongs to chamber ${String(event.chamberId)}`);
  if (cursor.leaf !== null && event.prev !== cursor.leaf) {
    throw broken(`prev of event ${expected} is not the hash of event ${cursor.eventId} as it was read`);
  }
  return { eventId: expected, leaf: toHex(leafHash(encoder.encode(line))), line, event };
}

function parse(line: string): ChamberEvent {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value as ChamberEvent;
  } catch {
    // Reported below.
  }
  throw broken('received a line that is not an event');
}

function broken(detail: string): ClientError {
  return new ClientError('CLIENT_ERR_CHAIN', `the chamber's log is broken: ${detail}`);
}
