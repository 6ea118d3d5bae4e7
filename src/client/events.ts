// Reads events over any number of connections. Each line contains the leaf hash of the previous one, and only lines that follow the cursor
// are returned, so a reader detects any change.
import { InvalidStub } from '../crypto/stub.ts';
import { READ_LIMITS, type ReadLimits } from '../reading/limits.ts';
import { backoffMillis, timerMillis } from '../reading/waiting.ts';
import type { AccountEvent, ChamberEvent } from '../vocabulary/events.ts';
import { type Hex, NO_PREVIOUS, toHex } from '../vocabulary/values.ts';
import { type CallOptions, PAGE_LINES_MAX, type Page, type Service, type Stubs } from './call.ts';
import { prepareStub } from './directory.ts';
import { ClientError, nullIfRetryable, parseJson, tooLarge } from './error.ts';
import { exchange } from './exchange.ts';
import { isNode } from './runtime.ts';
import { EVENT } from './shapes.ts';
import { TimeTried } from './time.ts';

/** A position in a chamber's log: the last event read, with the leaf hash that the next line must contain. */
export interface Cursor {
  readonly eventId: number;
  /** If null, the leaf is unknown, and the `prev` of the next line is not checked. */
  readonly leaf: Hex | null;
}

export interface CursorStore {
  load(): Promise<Cursor | undefined>;
  save(cursor: Cursor): Promise<void>;
}

/** A line that was verified to follow the previous one, and its event. */
export interface VerifiedLine<Event = ChamberEvent> extends Cursor {
  readonly leaf: Hex;
  /** The canonical line as stored, without a line break. */
  readonly line: string;
  readonly event: Event;
}

export const START: Cursor = { eventId: 0, leaf: NO_PREVIOUS };

export interface FollowOptions extends CallOptions {
  /** The event to resume after: its id, or better its cursor, against which the next line is checked. 0 reads everything. */
  readonly after?: number | Cursor;
  /**
   * Overrides `after` once it holds a cursor. The cursor is saved when the loop asks for the next event, so an event that is being handled
   * when the process dies is delivered again. To handle each event exactly once, store the cursor together with your own writes.
   */
  readonly cursorStore?: CursorStore;
}

/**
 * Yields every line after the cursor, then live lines, in order, each once, across reconnections. Throws CLIENT_ERR_CHAIN for a line that
 * does not follow the previous one, the service's error (chamber not found), CLIENT_ERR_UNREACHABLE if the service was never reached, and
 * the signal's reason.
 */
export async function* lines(
  service: Service,
  chamberId: number,
  { signal = new AbortController().signal, after = 0, cursorStore }: FollowOptions,
): AsyncGenerator<VerifiedLine, void, undefined> {
  let cursor = (await cursorStore?.load()) ?? toCursor(after);
  const path = () => `/chambers/${chamberId}/stream?after=${cursor.eventId}`;
  for await (const text of messages(service, { path, signal })) {
    const line = await followServed(service, { cursor, stream: chamberId, line: text }, signal);
    cursor = { eventId: line.eventId, leaf: line.leaf };
    service.heads.note(chamberId, line);
    yield line;
    await cursorStore?.save(cursor);
  }
}

export interface FollowAllOptions extends CallOptions {
  /** `<chamberId>:<eventId>` of the last line received; by default '0', which reads everything. */
  readonly after?: string;
}

/** The remembered cursors take about 20 MB. */
const HEADS_MAX = 100_000;

/**
 * Yields the lines of all chambers, then live lines, each once and in its chamber's order, across reconnections. Checks a line against its
 * chamber's previous line if this call has read and still remembers that line: the last line of each of the HEADS_MAX most recent chambers.
 * Throws like lines.
 */
export async function* allLines(
  service: Service,
  { signal = new AbortController().signal, after = '0' }: FollowAllOptions,
): AsyncGenerator<VerifiedLine & { readonly cursor: string }, void, undefined> {
  // The map is ordered by the chambers' newest lines.
  const heads = new Map<number, Cursor>();
  let hasForgotten = false;
  let cursor = after;
  const path = () => `/events?after=${encodeURIComponent(cursor)}`;
  for await (const text of messages(service, { path, signal })) {
    const { chamberId: stated, eventId = 0 } = (parseJson(text, service.limits) ?? {}) as Partial<ChamberEvent>;
    const chamberId = typeof stated === 'number' ? stated : 0;
    const isFromStart = after === '0' && !hasForgotten;
    const unread = isFromStart ? START : { eventId: eventId - 1, leaf: null };
    const next = { cursor: heads.get(chamberId) ?? unread, stream: chamberId, line: text };
    const line = await followServed(service, next, signal);
    heads.delete(chamberId);
    heads.set(chamberId, { eventId, leaf: line.leaf });
    if (heads.size > HEADS_MAX) {
      hasForgotten = true;
      const [oldest = 0] = heads.keys();
      heads.delete(oldest);
    }
    cursor = `${chamberId}:${eventId}`;
    service.heads.note(chamberId, line);
    yield { ...line, cursor };
  }
}

interface ConnectOptions {
  readonly path: () => string;
  readonly signal: AbortSignal;
}

const NO_WEBSOCKET =
  'the service would accept the stream, but no WebSocket handshake reaches it: does a proxy block it?';

const HANDSHAKE_AND_PROBE = 2;

async function* messages(service: Service, { path, signal }: ConnectOptions): AsyncGenerator<string, void, undefined> {
  const { local } = service.clock;
  const tried = new TimeTried(local);
  let wasReached = false;
  const baseUrl = service.baseUrl.replace(/^http/, 'ws');
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    let isOpen = false;
    const socket = await openSocket(baseUrl + path(), service.limits);
    const reading = { signal, limits: service.limits, onOpen: () => (isOpen = true) };
    for await (const text of messagesOf(socket, reading)) {
      attempt = 0;
      yield text;
    }
    signal.throwIfAborted();
    wasReached ||= isOpen;
    if (!isOpen) {
      // A WebSocket does not report why its handshake failed; the same request over HTTP does.
      const probing = exchange<void>(service, { method: 'GET', path: path(), as: 'nothing' }, signal);
      await (wasReached ? probing.catch(nullIfRetryable) : probing);
      const triedMillis = tried.after(HANDSHAKE_AND_PROBE * service.limits.responseMillisMax);
      if (!wasReached && triedMillis > service.patienceMillis)
        throw new ClientError('CLIENT_ERR_UNREACHABLE', NO_WEBSOCKET);
    }
    const waitMillis = backoffMillis(attempt);
    await local.sleep(waitMillis, signal);
    tried.after(waitMillis);
  }
}

/** Yields every line from the cursor to the log's head, with the same checks as lines. */
export async function* history(
  service: Service,
  chamberId: number,
  { signal, after = 0 }: Omit<FollowOptions, 'cursorStore'>,
): AsyncGenerator<VerifiedLine, void, undefined> {
  let cursor = toCursor(after);
  let page: Page;
  do {
    page = await readPage(service, `/chambers/${chamberId}`, cursor, signal);
    for (const text of page.lines) {
      const line = await followServed(service, { cursor, stream: chamberId, line: text }, signal);
      cursor = line;
      service.heads.note(chamberId, line);
      yield line;
    }
  } while (!page.isEnd);
}

/**
 * Like lines, from the start. Requests the whole pages up to `head`, an existing event, which a cache may serve, and reads the rest from
 * the stream.
 */
export async function* replay(
  service: Service,
  chamberId: number,
  { head, signal }: { readonly head: number; readonly signal: AbortSignal },
): AsyncGenerator<VerifiedLine, void, undefined> {
  const pagesEnd = head - (head % PAGE_LINES_MAX);
  let after: Cursor = START;
  if (pagesEnd > 0) {
    for await (const line of history(service, chamberId, { signal })) {
      after = line;
      yield line;
      if (line.eventId === pagesEnd) break;
    }
  }
  yield* lines(service, chamberId, { signal, after });
}

/** Yields every published line of an agent's account. The first line may have a number above 1, because release 0.1 did not publish all. */
export async function* accountHistory(
  service: Service,
  did: string,
  { signal }: CallOptions,
): AsyncGenerator<VerifiedLine<AccountEvent>, void, undefined> {
  let cursor: Cursor | undefined;
  let page: Page;
  do {
    page = await readPage(service, `/agents/${did}`, cursor ?? START, signal);
    for (const text of page.lines) {
      cursor ??= startOf(text, service.limits);
      const line: VerifiedLine<AccountEvent> = await followServed(service, { cursor, stream: did, line: text }, signal);
      cursor = line;
      yield line;
    }
  } while (!page.isEnd);
}

function startOf(line: string, limits: ReadLimits): Cursor {
  const { eventId } = (parseJson(line, limits) ?? {}) as { readonly eventId?: unknown };
  return typeof eventId === 'number' && eventId > 1 ? { eventId: eventId - 1, leaf: null } : START;
}

function toCursor(after: number | Cursor): Cursor {
  if (typeof after !== 'number') return after;
  return after === 0 ? START : { eventId: after, leaf: null };
}

/**
 * Reads up to the next multiple of PAGE_LINES_MAX, and from there whole pages of the log that the service named, so that all readers
 * request the same pages and a cache may serve them.
 */
async function readPage(
  service: Service,
  owner: string,
  { eventId }: Cursor,
  signal: AbortSignal | undefined,
): Promise<Page> {
  const { contact } = service;
  const linesMax = PAGE_LINES_MAX - (eventId % PAGE_LINES_MAX);
  const read = (log: string) => {
    const path = `${owner}/events?${log}after=${eventId}&limit=${linesMax}`;
    return exchange<Page>(service, { method: 'GET', path, as: 'page', linesMax }, signal);
  };
  if (contact.logId === undefined || linesMax < PAGE_LINES_MAX) return await read('');
  try {
    return await read(`log=${encodeURIComponent(contact.logId)}&`);
  } catch (error) {
    // The service has another log now. follow() checks whether its lines continue the lines read so far.
    if (!(error instanceof ClientError) || error.code !== 'FORUM_ERR_CONFLICT') throw error;
    contact.logId = undefined;
    return await read('');
  }
}

const encoder = new TextEncoder();

/** The owner of a line: a chamber's id or an agent's DID. */
type Stream = number | string;
type EventIn<Owner extends Stream> = Owner extends number ? ChamberEvent : AccountEvent;

interface NextLine<Owner extends Stream> {
  readonly cursor: Cursor;
  readonly stream: Owner;
  readonly line: string;
}

/** Like follow, for a line from the service: a stub must be signed with a key in the service's directory. */
export async function followServed<Owner extends Stream>(
  service: Service,
  { cursor, stream, line }: NextLine<Owner>,
  signal?: AbortSignal,
): Promise<VerifiedLine<EventIn<Owner>>> {
  await prepareStub(service, line, signal);
  return follow(cursor, stream, line, { limits: service.limits, stubs: service.stubs });
}

interface FollowContext {
  readonly limits?: ReadLimits;
  readonly stubs: Pick<Stubs, 'leafOf'>;
}

/** Throws CLIENT_ERR_CHAIN unless the line is the next one of the stream after the cursor. */
export function follow<Owner extends Stream>(
  cursor: Cursor,
  stream: Owner,
  line: string,
  { limits = READ_LIMITS, stubs }: FollowContext,
): VerifiedLine<EventIn<Owner>> {
  const event = parseJson(line, limits) as EventIn<Owner> | null | undefined;
  if (typeof event !== 'object' || event === null) throw chainError('received a line that is not an event');
  const expected = cursor.eventId + 1;
  const problem = EVENT(event, '');
  if (problem !== undefined) throw chainError(`event ${expected} can’t be used: ${problem}`);
  if (event.eventId !== expected) throw chainError(`expected event ${expected}, received ${event.eventId}`);
  const isChamber = typeof stream === 'number';
  const owner = isChamber ? event.chamberId : event.did;
  if (owner !== stream) throw chainError(`event ${expected} belongs to ${isChamber ? 'chamber ' : ''}${owner}`);
  if (cursor.leaf !== null && event.prev !== cursor.leaf) {
    throw chainError(`prev of event ${expected} is not the hash that was computed for event ${cursor.eventId}`);
  }
  try {
    return { eventId: expected, leaf: toHex(stubs.leafOf(encoder.encode(line), event)), line, event };
  } catch (error) {
    if (error instanceof InvalidStub) throw chainError(`event ${expected} ${error.message}`);
    throw error;
  }
}

function chainError(detail: string): ClientError {
  return new ClientError('CLIENT_ERR_CHAIN', `the log is broken: ${detail}`);
}

/** The members that browsers' WebSocket and that of `ws` share, apart from event handlers. */
interface Socket {
  close(): void;
  /** Only in `ws`. */
  terminate?(): void;
  on?(event: 'ping', listener: () => void): void;
}

/** The maximum backlog, in messages of the maximum size. A socket beyond it is closed, and the reader opens another one later. */
const QUEUED_MESSAGES_MAX = 2;
/** The memory that a queued message takes in addition to its text. */
const MESSAGE_COST_CHARS = 100;

/** Uses `ws` in Node, whose own WebSocket does not limit the size of messages. */
async function openSocket(url: string, { lineBytesMax, responseMillisMax }: ReadLimits): Promise<Socket> {
  if (!isNode()) return new WebSocket(url);
  const ws = await import('ws');
  const handshakeTimeout = responseMillisMax;
  return new ws.WebSocket(url, { perMessageDeflate: false, maxPayload: lineBytesMax, handshakeTimeout });
}

interface SocketReading {
  readonly signal: AbortSignal;
  readonly limits: ReadLimits;
  readonly onOpen: () => void;
}

/** Yields messages until the connection ends; closes it when the reader stops. Throws CLIENT_ERR_TOO_LARGE beyond lineBytesMax. */
async function* messagesOf(
  socket: Socket,
  { signal, limits, onOpen }: SocketReading,
): AsyncGenerator<string, void, undefined> {
  const { lineBytesMax, silenceMillisMax } = limits;
  let queue: string[] = [];
  let queuedChars = 0;
  let isEnded = false;
  let problem: ClientError | undefined;
  let wake = () => {};
  let silence: ReturnType<typeof setTimeout> | undefined;
  const restartSilence = () => {
    clearTimeout(silence);
    silence = setTimeout(end, timerMillis(silenceMillisMax));
  };
  const end = () => {
    if (isEnded) return;
    isEnded = true;
    clearTimeout(silence);
    signal.removeEventListener('abort', end);
    // `ws` also emits an error event for an interrupted handshake, so onerror stays assigned.
    if (socket.terminate === undefined) socket.close();
    else socket.terminate();
    wake();
  };
  const receive = ({ data }: { readonly data: unknown }) => {
    if (isEnded) return;
    // The service sends only text.
    if (typeof data !== 'string') return end();
    queue.push(data);
    queuedChars += data.length + MESSAGE_COST_CHARS;
    if (queuedChars > QUEUED_MESSAGES_MAX * lineBytesMax) return end();
    restartSilence();
    wake();
  };
  const fail = ({ error }: { readonly error?: unknown }) => {
    const isTooLarge = (error as { readonly code?: unknown } | undefined)?.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';
    if (isTooLarge) problem = tooLarge(`the service sent a message of more than ${lineBytesMax} bytes`, error);
    end();
  };
  Object.assign(socket, { onopen: onOpen, onmessage: receive, onclose: end, onerror: fail });
  socket.on?.('ping', restartSilence);
  signal.addEventListener('abort', end, { once: true });
  restartSilence();
  if (signal.aborted) end();
  try {
    while (true) {
      const messages = queue;
      queue = [];
      queuedChars = 0;
      yield* messages;
      if (queue.length > 0) continue;
      if (problem !== undefined) throw problem;
      if (isEnded) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    end();
  }
}
