// What moves say that their agents had seen of the chamber, compared with the lines: each is signed by its agent, so a history that was
// replaced as a whole does not match.
import { seenIn } from '../../moves/move.ts';
import { READ_LIMITS } from '../../reading/limits.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { MoveEvent } from '../../vocabulary/events.ts';
import { parseJson } from '../../vocabulary/json.ts';
import { toHex } from '../../vocabulary/values.ts';
import { type Findings, OF_LOSS } from '../report/findings.ts';
import { RECENT_LEAVES_MIN } from './recent-leaves.ts';

/** The name, or an escape of one of its letters: most long texts need not be parsed for it. */
const MAY_HAVE_SEEN = /seen|\\u00(?:73|65|6[eE])/;

/** `leafAt` knows the leaves of the lines before the move; undefined for one that is missing or too long ago. */
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
    const why = `the line of event ${seen.eventId}, which ${who}, is not known`;
    const isLongAgo = eventId - seen.eventId >= RECENT_LEAVES_MIN;
    findings.notEvaluated(isLongAgo ? { limit: 'long ago', why } : { follows: OF_LOSS, why }, 'seen');
  } else {
    const problem = `${who} another event ${seen.eventId}: its leaf was ${seen.leaf}`;
    findings.judge('seen', [seen.eventId, eventId], toHex(leaf) !== seen.leaf.toLowerCase() && problem);
  }
}

function seenInText(body: string) {
  if (!MAY_HAVE_SEEN.test(body)) return undefined;
  try {
    return seenIn(parseJson(body, READ_LIMITS.jsonValuesMax));
  } catch (error) {
    // The check `rules` finds a body that is not valid.
    if (error instanceof ForumError) return undefined;
    throw error;
  }
}
