// Searches samples of streams for an old line that no checkpoint covers: a service that keeps serving an old checkpoint hides newer lines
// from the log. Only a stream without a next line counts as up to date; any other response is an error.
import { setTimeout as sleep } from 'node:timers/promises';
import { READ_LIMITS } from '../reading/limits.ts';
import { nameOfEvent, nameOfStream, positionOfLine, type Stream } from '../tlog/leaf-index.ts';
import { COVERED_SECONDS_MAX, instantOf, type Millis } from '../vocabulary/values.ts';
import type { MirrorFolder } from './folder.ts';
import { CHAMBERS_MAX, NotServed, type PublishedLog } from './published-log.ts';

/** The newest chamber and random others of the list. Each sample takes one request. */
const LISTED_SAMPLES_MAX = 8;
/** Random chambers of the folder, listed or not, and as many accounts. */
const HELD_SAMPLES_MAX = 4;
/** A node that lags behind another one catches up soon. */
const READS_MAX = 3;
const READ_PAUSE_MS = 1_000;

export interface OverdueLine {
  readonly stream: Stream;
  readonly eventId: number;
  readonly problem: string;
  readonly line: string;
}

/** The service does not serve a stream that it lists, or that it has served before. */
export class Missing extends NotServed {
  /** Whether the folder has lines of the stream. */
  readonly isHeld: boolean;
  readonly stream: Stream;

  constructor(problem: string, stream: Stream, isHeld: boolean) {
    super(problem);
    this.stream = stream;
    this.isHeld = isHeld;
  }
}

interface Search {
  readonly log: PublishedLog;
  readonly folder: Pick<MirrorFolder, 'endOf' | 'streamFrom' | 'chambersFrom'>;
  readonly now: Millis;
  readonly signal: AbortSignal | undefined;
}

/** Rejects with NotServed or Missing. */
export async function findOverdue(search: Search): Promise<OverdueLine | undefined> {
  const listed = await retry(search, () => listedChambers(search));
  const [newest, ...others] = listed;
  const listedSamples = [newest, ...others.toSorted(() => Math.random() - 0.5).slice(0, LISTED_SAMPLES_MAX - 1)];
  for (const stream of new Set([...listedSamples, ...heldStreams(search)])) {
    if (stream === undefined) continue;
    const overdue = await retry(search, () => overdueOf(stream, search));
    if (overdue !== undefined) return overdue;
  }
  return undefined;
}

async function retry<Result>({ signal }: Search, read: () => Promise<Result>): Promise<Result> {
  for (let reads = 1; ; reads++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof Missing) || reads === READS_MAX) throw error;
      await sleep(READ_PAUSE_MS, undefined, { signal });
    }
  }
}

/** Rejects unless the list, down to its last id, has every chamber of the folder. */
async function listedChambers({ log, folder }: Search): Promise<readonly number[]> {
  const listed = await log.chambers();
  const least = listed.length < CHAMBERS_MAX ? 1 : (listed.at(-1) ?? 1);
  const ids = new Set(listed);
  const unlisted = folder.chambersFrom(least, CHAMBERS_MAX + 1).find((id) => !ids.has(id));
  if (unlisted === undefined) return listed;
  throw new Missing(
    `the service does not list chamber ${unlisted}, although the folder has lines of it`,
    unlisted,
    true,
  );
}

const DIDS_FROM = 'did:key:z6Mk';
const DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

function* heldStreams({ folder }: Search): Iterable<Stream | undefined> {
  const sampleAccount = (text: string) => folder.streamFrom(text) ?? folder.streamFrom('did:');
  const sampleChamber = (text: string) =>
    [text, '0'].map(folder.streamFrom, folder).find((id) => typeof id === 'number');
  for (let i = 0; i < HELD_SAMPLES_MAX; i++) {
    yield sampleChamber(`${Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)}`);
    yield sampleAccount(DIDS_FROM + Array.from({ length: 6 }, () => DIGITS[Math.floor(Math.random() * 58)]).join(''));
  }
}

const NOT_FOUND = 404;

async function overdueOf(stream: Stream, { log, folder, now }: Search): Promise<OverdueLine | undefined> {
  const end = folder.endOf(stream);
  const after = end?.eventId ?? 0;
  const lines = await log
    .events(stream, { after, count: 1, bytesMax: READ_LIMITS.lineBytesMax })
    .catch((error: unknown) => {
      if (error instanceof NotServed && error.status === NOT_FOUND) return undefined;
      throw error;
    });
  const [bytes] = lines ?? [];
  if (lines === undefined || (bytes === undefined && end === undefined)) {
    const known = end === undefined ? 'it lists it' : 'the folder has lines of it';
    throw new Missing(
      `the service does not serve ${nameOfStream(stream)}, although ${known}`,
      stream,
      end !== undefined,
    );
  }
  return bytes && overdueLine(Buffer.from(bytes).toString(), { stream, eventId: after + 1 }, now);
}

function overdueLine(line: string, event: Pick<OverdueLine, 'stream' | 'eventId'>, now: Millis) {
  const position = positionOfLine(line, READ_LIMITS.jsonValuesMax);
  const at = typeof position?.ts === 'string' ? instantOf(position.ts) : Number.NaN;
  if (position?.stream !== event.stream || position.eventId !== event.eventId || Number.isNaN(at))
    throw new NotServed(`the service serves a line of another event as ${nameOfEvent(event)}`);
  const problem = `${nameOfEvent(event)} is not covered by a checkpoint, although it is more than a minute old`;
  return at <= now - COVERED_SECONDS_MAX * 1_000 ? { ...event, problem, line } : undefined;
}
