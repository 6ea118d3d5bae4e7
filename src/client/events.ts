// Events over any number of connections. Each line contains the leaf hash of the previous one: only lines that follow the cursor are
// returned, so a reader detects any change.
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
  /** null if unknown: then the next line's `prev` is not checked. */
  readonly leaf: Hex | null;
}

export interface CursorStore {
  load(): Promise<Cursor | undefined>;
  save(cursor: Cursor): Promise<void>;
}

/** A line that follows the one before it, and its event. */
export interface VerifiedLine<Event = ChamberEvent> extends Cursor {
  readonly leaf: Hex;
  /** The canonical line as stored, without a line break. */
  readonly line: string;
  readonly event: Event;
}

export const START: Cursor = { eventId: 0, leaf: NO_PREVIOUS };

export interface FollowOptions extends CallOptions {
  /** The event to resume after: its id, or better its cursor, which the next line is checked against; 0 is everything. */
  readonly after?: number | Cursor;
  /**
   * Overrides `after` once it holds a cursor. A cursor is saved when the loop asks for the next event, so an event that is
   * being handled when the process dies is delivered again. To never handle one twice, store the cursor with your own writes.
   */
  readonly cursorStore?: CursorStore;
}

/**
 * Yields every line after the cursor, then live ones, in order, each once, across reconnections. Throws CLIENT_ERR_CHAIN on a line that
 * does not follow, the service's error (chamber not found), CLIENT_ERR_UNREACHABLE if the service was never reached, and the signal's
 * reason.
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
  /** `<chamberId>:<eventId>` of the last line received; '0', everything, by default. */
  readonly after?: string;
}

/** Takes some 20 MB. */
const HEADS_MAX = 100_000;

/**
 * Yields the lines of all chambers, then live ones, each once and in its chamber's order, across reconnections. A line is checked against
 * its chamber's previous one if this call has read it and still remembers it: the last line of each of the HEADS_MAX most recent chambers.
 * Throws as lines.
 */
export async function* allLines(
  service: Service,
  { signal = new AbortController().signal, after = '0' }: FollowAllOptions,
): AsyncGenerator<VerifiedLine & { readonly cursor: string }, void, undefined> {
  // In the order of the chambers' newest lines.
  const heads = new Map<number, Cursor>();
  let isForgetful = false;
  let cursor = after;
  const path = () => `/events?after=${encodeURIComponent(cursor)}`;
  for await (const text of messages(service, { path, signal })) {
    const { chamberId: stated, eventId = 0 } = (parseJson(text, service.limits) ?? {}) as Partial<ChamberEvent>;
    const chamberId = typeof stated === 'number' ? stated : 0;
    const isFromStart = after === '0' && !isForgetful;
    const unread = isFromStart ? START : { eventId: eventId - 1, leaf: null };
    const next = { cursor: heads.get(chamberId) ?? unread, stream: chamberId, line: text };
    const line = await followServed(service, next, signal);
    heads.delete(chamberId);
    heads.set(chamberId, { eventId, leaf: line.leaf });
    if (heads.size > HEADS_MAX) {
      isForgetful = true;
      const [oldest = 0] = heads.keys();
      heads.delete(oldest);
    }
    cursor = `${chamberId}:${eventId}`;
    service.heads.note(chamberId, line);
    yield { ...line, cursor };
  }
}

interface Connecting {
  readonly path: () => string;
  readonly signal: AbortSignal;
}

const NO_WEBSOCKET =
  'the service would accept the stream, but no WebSocket handshake reaches it: does a proxy block it?';

const HANDSHAKE_AND_PROBE = 2;

async function* messages(service: Service, { path, signal }: Connecting): AsyncGenerator<string, void, undefined> {
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

/** Yields every line after the cursor up to the log's head, checked as by lines. */
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
 * As lines, from the start. `head` is an existing event: whole pages up to it are read as pages, which a cache may serve, rather than
 * over the stream.
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

/** Yields every published line of an agent's account. The first may have a number above 1 (release 0.1). */
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
 * Reads up to the next multiple of PAGE_LINES_MAX, and from there whole pages of the log that the service named. All readers request
 * the same pages, so a cache may serve them.
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
    // The service has another log now. follow checks whether its lines continue the ones read before.
    if (!(error instanceof ClientError) || error.code !== 'FORUM_ERR_CONFLICT') throw error;
    contact.logId = undefined;
    return await read('');
  }
}

const encoder = new TextEncoder();

/** The owner of a line: a chamber's id or an agent's DID. */
type Stream = number | string;
type EventIn<Owner extends Stream> = Owner extends number ? ChamberEvent : AccountEvent;

interface Next<Owner extends Stream> {
  readonly cursor: Cursor;
  readonly stream: Owner;
  readonly line: string;
}

/** As follow, for a line that the service has sent: a stub must be signed by a key in its directory. */
export async function followServed<Owner extends Stream>(
  service: Service,
  { cursor, stream, line }: Next<Owner>,
  signal?: AbortSignal,
): Promise<VerifiedLine<EventIn<Owner>>> {
  await prepareStub(service, line, signal);
  return follow(cursor, stream, line, { limits: service.limits, stubs: service.stubs });
}

interface Reading {
  readonly limits?: ReadLimits;
  /** Judges stubs. */
  readonly stubs: Pick<Stubs, 'leafOf'>;
}

/** Checks that the line of a chamber or an agent is the next one after the cursor; throws CLIENT_ERR_CHAIN if not. */
export function follow<Owner extends Stream>(
  cursor: Cursor,
  stream: Owner,
  line: string,
  { limits = READ_LIMITS, stubs }: Reading,
): VerifiedLine<EventIn<Owner>> {
  const event = parseJson(line, limits) as EventIn<Owner> | null | undefined;
  if (typeof event !== 'object' || event === null) throw broken('received a line that is not an event');
  const expected = cursor.eventId + 1;
  const problem = EVENT(event, '');
  if (problem !== undefined) throw broken(`event ${expected} can’t be used: ${problem}`);
  if (event.eventId !== expected) throw broken(`expected event ${expected}, received ${event.eventId}`);
  const isChamber = typeof stream === 'number';
  const owner = isChamber ? event.chamberId : event.did;
  if (owner !== stream) throw broken(`event ${expected} belongs to ${isChamber ? 'chamber ' : ''}${owner}`);
  if (cursor.leaf !== null && event.prev !== cursor.leaf) {
    throw broken(`prev of event ${expected} is not the hash of event ${cursor.eventId} as it was read`);
  }
  try {
    return { eventId: expected, leaf: toHex(stubs.leafOf(encoder.encode(line), event)), line, event };
  } catch (error) {
    if (error instanceof InvalidStub) throw broken(`event ${expected} ${error.message}`);
    throw error;
  }
}

function broken(detail: string): ClientError {
  return new ClientError('CLIENT_ERR_CHAIN', `the log is broken: ${detail}`);
}

/** The common members of the WebSockets of browsers and of `ws`, apart from event handlers. */
interface Socket {
  close(): void;
  /** Only `ws`. */
  terminate?(): void;
  on?(event: 'ping', listener: () => void): void;
}

/** A socket with a longer backlog, in messages of the maximum size, is closed; the reader opens another one later. */
const QUEUED_MESSAGES_MAX = 2;
/** The memory of a queued message besides its text. */
const MESSAGE_COST_CHARS = 100;

/** Node's own WebSocket does not limit the size of messages. */
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

/**
 * Ends with the connection, which is closed when the reader stops. Throws CLIENT_ERR_TOO_LARGE after a message beyond lineBytesMax.
 */
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
