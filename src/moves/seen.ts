// What a move says that its agent had seen of the chamber: a service that shows agents two histories is found out by the first move
// that crosses from one to the other.
import * as v from 'valibot';
import { ForumError } from '../vocabulary/errors.ts';
import { exactly, integer, sentHash } from '../vocabulary/schemas.ts';
import type { Hex, JsonValue } from '../vocabulary/values.ts';

/** An event of the chamber, with the leaf hash of its line. */
export interface SeenEvent {
  readonly eventId: number;
  readonly leaf: Hex;
}

const seen: v.GenericSchema<unknown, SeenEvent> = exactly({
  eventId: integer(1, Number.MAX_SAFE_INTEGER),
  leaf: sentHash('of its line'),
});

/** The body of a move in a chamber: these members, and `seen` if the agent states it. */
export function moveBody<Entries extends v.ObjectEntries>(entries: Entries) {
  const description =
    'the last event that the agent had verified; 409 FORUM_ERR_HISTORY if the chamber has another there';
  return exactly({ ...entries, seen: v.exactOptional(v.pipe(seen, v.description(description))) });
}

/** What a body states; undefined where that is absent or malformed, which its schema reports. */
export function seenIn(body: JsonValue | undefined): SeenEvent | undefined {
  if (typeof body !== 'object' || body === null || !('seen' in body)) return undefined;
  const { success, output } = v.safeParse(seen, body['seen' as keyof typeof body]);
  return success ? output : undefined;
}

/**
 * The decision, in the order of checks: what forbids the move and what it lacks, then that the agent had seen this history, then
 * conflicts. `leaf` is that of the chamber's event, null if it has none. Throws FORUM_ERR_HISTORY.
 */
export function decideAfterHistory<Payload>(
  decide: () => Payload,
  seen: SeenEvent | undefined,
  leaf: Hex | null,
): Payload {
  try {
    const payload = decide();
    requireHistory(seen, leaf);
    return payload;
  } catch (error) {
    // A question to the chain is no error yet, and is asked last.
    if (!(error instanceof ForumError) || error.code === 'FORUM_ERR_CONFLICT') requireHistory(seen, leaf);
    throw error;
  }
}

function requireHistory(seen: SeenEvent | undefined, leaf: Hex | null): void {
  if (seen === undefined || seen.leaf.toLowerCase() === leaf) return;
  const here = leaf === null ? 'does not exist here' : `has the leaf ${leaf} here`;
  throw new ForumError(
    'FORUM_ERR_HISTORY',
    `seen: event ${seen.eventId} ${here}, and the leaf ${seen.leaf} in the history that you saw: keep both as evidence`,
    { history: { eventId: seen.eventId, seen: seen.leaf, leaf } },
  );
}
