// Looks for a line that the service serves and no checkpoint covers, though it is old enough: a service that goes on showing a checkpoint of
// before keeps what follows out of the log.
import { READ_LIMITS } from '../reading/limits.ts';
import { nameOfEvent, placeOfLine, type Stream } from '../tlog/leaf-index.ts';
import { parseJson } from '../vocabulary/json.ts';
import { COVERED_SECONDS_MAX, instantOf, type Millis } from '../vocabulary/values.ts';
import type { MirrorFolder } from './folder.ts';
import { NotServed, type PublishedLog } from './published-log.ts';

/** The newest chamber, and others by chance: each look costs a request. */
const LOOKS_MAX = 8;

export interface OverdueLine {
  readonly stream: Stream;
  readonly eventId: number;
  readonly problem: string;
  readonly line: string;
}

/** Undefined if none of the chambers that were looked at has one. */
export async function findOverdue(
  log: PublishedLog,
  folder: Pick<MirrorFolder, 'endOf'>,
  now: Millis,
): Promise<OverdueLine | undefined> {
  const [newest, ...others] = await log.chambers().catch(noneIfNotFound);
  if (newest === undefined) return undefined;
  const looks = [newest, ...others.toSorted(() => Math.random() - 0.5).slice(0, LOOKS_MAX - 1)];
  for (const stream of looks) {
    const after = folder.endOf(stream)?.eventId ?? 0;
    const [line] = await log
      .events(stream, { after, count: 1, bytesMax: READ_LIMITS.lineBytesMax })
      .catch(noneIfNotFound);
    const overdue = line && overdueLine(Buffer.from(line).toString(), stream, now);
    if (overdue !== undefined) return overdue;
  }
  return undefined;
}

const NOT_FOUND = 404;

/** What is not there shows no line either. */
function noneIfNotFound(error: unknown): [] {
  if (error instanceof NotServed && error.status === NOT_FOUND) return [];
  throw error;
}

function overdueLine(line: string, stream: Stream, now: Millis): OverdueLine | undefined {
  const place = placeOfLine(line, READ_LIMITS.jsonValuesMax);
  if (place === undefined) return undefined;
  const { ts } = Object(parseJson(line, READ_LIMITS.jsonValuesMax)) as { readonly ts?: unknown };
  const isDue = typeof ts === 'string' && instantOf(ts) <= now - COVERED_SECONDS_MAX * 1_000;
  const { eventId } = place;
  const problem = `${nameOfEvent({ stream, eventId })} is under no checkpoint, although it is more than a minute old`;
  return isDue ? { stream, eventId, problem, line } : undefined;
}
