// Compares the signed `seen` members of requests with the lines. A service that replaced the whole history can't forge them.
import { HASH_BYTES } from '../../crypto/merkle.ts';
import { seenIn } from '../../moves/move.ts';
import { READ_LIMITS } from '../../reading/limits.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { MoveEvent } from '../../vocabulary/events.ts';
import { parseJson } from '../../vocabulary/json.ts';
import { toHex } from '../../vocabulary/values.ts';
import { type Findings, LOSS_CHECKS } from '../report/findings.ts';

/** Matches the member's name, possibly escaped, so that most long texts need no parsing. */
const MAY_HAVE_SEEN = /seen|\\u00(?:73|65|6[eE])/;

/** `leafAt` returns undefined for a line that is missing or no longer kept. */
export function judgeSeen(
  findings: Findings,
  { request }: MoveEvent,
  eventId: number,
  leafAt: (eventId: number) => Uint8Array | undefined,
): void {
  const seen = seenInText(request?.body ?? '');
  if (seen === undefined) return;
  const who = `the agent of event ${eventId} had seen`;
  const leaf = leafAt(seen.eventId);
  if (seen.eventId >= eventId) {
    findings.judge('seen', [eventId], `${who} event ${seen.eventId}, which is not before it`);
  } else if (leaf === undefined) {
    const why = `${who} event ${seen.eventId}, whose line is unknown`;
    const isLongAgo = eventId - seen.eventId >= RECENT_LEAVES_MIN;
    findings.notEvaluated(isLongAgo ? { limit: 'long ago', why } : { follows: LOSS_CHECKS, why }, 'seen');
  } else {
    const problem = `${who} a different event ${seen.eventId}: its leaf was ${seen.leaf}`;
    findings.judge('seen', [seen.eventId, eventId], toHex(leaf) !== seen.leaf.toLowerCase() && problem);
  }
}

function seenInText(body: string) {
  if (!MAY_HAVE_SEEN.test(body)) return undefined;
  try {
    return seenIn(parseJson(body, READ_LIMITS.jsonValuesMax));
  } catch (error) {
    // The check `rules` reports an invalid body.
    if (error instanceof ForumError) return undefined;
    throw error;
  }
}

const CHUNK_LEAVES = 1_024;
const CHUNKS_MAX = 1_024;
/** At least this many of the latest leaves are kept. */
export const RECENT_LEAVES_MIN = CHUNK_LEAVES * (CHUNKS_MAX - 1);

/** The leaves of a chamber's latest lines, 32 bytes each. */
export class RecentLeaves {
  readonly #chunks = new Map<number, Uint8Array>();
  #count = 0;

  /** Ids must increase by one; a repeated id replaces the earlier leaf, and leaves after a gap are dropped. */
  add(eventId: number, leaf: Uint8Array): void {
    if (eventId > this.#count + 1) return;
    this.#count = Math.max(this.#count, eventId);
    const number = Math.floor(eventId / CHUNK_LEAVES);
    const chunk = this.#chunks.get(number) ?? new Uint8Array(CHUNK_LEAVES * HASH_BYTES);
    this.#chunks.set(number, chunk).delete(number - CHUNKS_MAX);
    chunk.set(leaf, (eventId % CHUNK_LEAVES) * HASH_BYTES);
  }

  get(eventId: number): Uint8Array | undefined {
    if (eventId > this.#count) return undefined;
    const at = (eventId % CHUNK_LEAVES) * HASH_BYTES;
    return this.#chunks.get(Math.floor(eventId / CHUNK_LEAVES))?.subarray(at, at + HASH_BYTES);
  }
}
