// Events over any number of connections. Each line names the leaf hash of the previous one, so that a reader
// detects any change: no line is returned that does not follow the cursor.
import { leafHash } from '../crypto/merkle.ts';
import type { AccountEvent, ChamberEvent } from '../vocabulary/events.ts';
import { type Hex, NO_PREVIOUS, toHex } from '../vocabulary/values.ts';
import { ClientError, nullIfRetryable } from './error.ts';
import { type CallOptions, exchange, parseJson, type Service } from './exchange.ts';
import type { CursorStore } from './stores.ts';
import { backoffMillis } from './time.ts';

/** A position in a chamber's log: the last event read, with its leaf hash, by which the next line is checked. */
export interface Cursor {
  readonly eventId: number;
  /** null if not known: then the next line's `prev` is not checked. */
  readonly leaf: Hex | null;
}

/** A line that follows the one before it, and its event. */
export interface VerifiedLine<Event = ChamberEvent> extends Cursor {
  readonly leaf: Hex;
  /** The canonical line as stored, without a line break. */
  readonly line: string;
  readonly event: Event;
}

export const START: Cursor = { eventId: 0, leaf: NO_PREVIOUS };

/** From where a chamber's log is read, and where the position is kept. */
export interface FollowOptions extends CallOptions {
  /** The event to resume after: its id, or better its cursor, by which the next line is checked; 0 is everything. */
  readonly after?: number | Cursor;
  /**
   * Overrides `after` once it holds a cursor. A cursor is saved when the loop asks for the next event, so an event that is
   * being handled when the process dies is delivered again. To never handle one twice, store the cursor with your own writes.
   */
  readonly cursorStore?: CursorStore;
}

/**
 * Every line after the cursor, then live ones, in order, each once, across reconnections. Throws
 * CLIENT_ERR_CHAIN on a line that does not follow, the service's error (chamber not found), CLIENT_ERR_UNREACHABLE if the
 * service was never reached, and the signal's reason.
 */
export async function* lines(
  service: Service,
  chamberId: number,
  { signal = new AbortController().signal, after = 0, cursorStore }: FollowOptions,
): AsyncGenerator<VerifiedLine, void, undefined> {
  let cursor = (await cursorStore?.load()) ?? toCursor(after);
  const path = () => `/chambers/${chamberId}/stream?after=${cursor.eventId}`;
  for await (const text of messages(service, { path, signal })) {
    const line = follow(cursor, chamberId, text);
    cursor = { eventId: line.eventId, leaf: line.leaf };
    yield line;
    await cursorStore?.save(cursor);
  }
}

/** From where the logs of all chambers are read. */
export interface FollowAllOptions extends CallOptions {
  /** `<chamberId>:<eventId>` of the last line received; '0', everything, by default. */
  readonly after?: string;
}

/**
 * The lines of all chambers, then live ones, each once and in its chamber's order, across reconnections. A line is checked
 * against the one before it of its chamber, if that was read in this call: the last of each chamber is remembered. Throws as lines.
 */
export async function* allLines(
  service: Service,
  { signal = new AbortController().signal, after = '0' }: FollowAllOptions,
): AsyncGenerator<VerifiedLine & { readonly cursor: string }, void, undefined> {
  const heads = new Map<number, Cursor>();
  let cursor = after;
  const path = () => `/events?after=${encodeURIComponent(cursor)}`;
  for await (const text of messages(service, { path, signal })) {
    const { chamberId = 0, eventId = 0 } = (parseJson(text) ?? {}) as Partial<ChamberEvent>;
    const unread = after === '0' ? START : { eventId: eventId - 1, leaf: null };
    const line = follow(heads.get(chamberId) ?? unread, chamberId, text);
    heads.set(chamberId, { eventId, leaf: line.leaf });
    cursor = `${chamberId}:${eventId}`;
    yield { ...line, cursor };
  }
}

interface Connecting {
  /** The path of the next connection. */
  readonly path: () => string;
  readonly signal: AbortSignal;
}

const NO_WEBSOCKET =
  'the service would accept the stream, but no WebSocket handshake reaches it: is a proxy in between?';

/** The messages of one connection after another. */
async function* messages(service: Service, { path, signal }: Connecting): AsyncGenerator<string, void, undefined> {
  const { local } = service.clock;
  const giveUpAt = local.now() + service.patienceMillis;
  let wasReached = false;
  const baseUrl = service.baseUrl.replace(/^http/, 'ws');
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    let isOpen = false;
    const socket = await openSocket(baseUrl + path());
    for await (const text of messagesOf(socket, { signal, onOpen: () => (isOpen = true) })) {
      attempt = 0;
      yield text;
    }
    signal.throwIfAborted();
    wasReached ||= isOpen;
    if (!isOpen) {
      // A WebSocket does not say why its handshake failed. The same request as a stream over HTTP does.
      const probing = exchange<void>(service, { method: 'GET', path: path(), isProbe: true }, signal);
      await (wasReached ? probing.catch(nullIfRetryable) : probing);
      if (!wasReached && local.now() > giveUpAt) throw new ClientError('CLIENT_ERR_UNREACHABLE', NO_WEBSOCKET);
    }
    await local.sleep(backoffMillis(attempt), signal);
  }
}

const PAGE_LINES = 1_000;

/** Every line after the cursor up to the log's head, checked in the same way. */
export async function* history(
  service: Service,
  chamberId: number,
  { signal, after = 0 }: Omit<FollowOptions, 'cursorStore'>,
): AsyncGenerator<VerifiedLine, void, undefined> {
  let cursor = toCursor(after);
  let page: readonly string[];
  do {
    page = await readPage(service, `/chambers/${chamberId}`, { after: cursor, limit: PAGE_LINES, signal });
    for (const text of page) {
      const line = follow(cursor, chamberId, text);
      cursor = line;
      yield line;
    }
  } while (page.length === PAGE_LINES);
}

/** Every line of an agent's account that is published: the first may have a later number than 1 (release 0.1). */
export async function* accountHistory(
  service: Service,
  did: string,
  { signal }: CallOptions,
): AsyncGenerator<VerifiedLine<AccountEvent>, void, undefined> {
  let cursor: Cursor | undefined;
  let page: readonly string[];
  do {
    page = await readPage(service, `/agents/${did}`, { after: cursor ?? START, limit: PAGE_LINES, signal });
    for (const text of page) {
      cursor ??= startOf(text);
      const line: VerifiedLine<AccountEvent> = follow(cursor, did, text);
      cursor = line;
      yield line;
    }
  } while (page.length === PAGE_LINES);
}

function startOf(line: string): Cursor {
  const { eventId } = (parseJson(line) ?? {}) as { readonly eventId?: unknown };
  return typeof eventId === 'number' && eventId > 1 ? { eventId: eventId - 1, leaf: null } : START;
}

function toCursor(after: number | Cursor): Cursor {
  if (typeof after !== 'number') return after;
  return after === 0 ? START : { eventId: after, leaf: null };
}

async function readPage(
  service: Service,
  owner: string,
  { after, limit, signal }: { after: Cursor; limit: number; signal: AbortSignal | undefined },
) {
  const path = `${owner}/events?after=${after.eventId}&limit=${limit}`;
  const ndjson = await exchange<string>(service, { method: 'GET', path, isText: true }, signal);
  return ndjson.split('\n').slice(0, -1);
}

const encoder = new TextEncoder();

/** Checks that the line of a chamber, or of an agent, is the next one after the cursor; throws CLIENT_ERR_CHAIN if not. */
export function follow(cursor: Cursor, chamberId: number, line: string): VerifiedLine;
export function follow(cursor: Cursor, did: string, line: string): VerifiedLine<AccountEvent>;
export function follow(
  cursor: Cursor,
  stream: number | string,
  line: string,
): VerifiedLine<AccountEvent | ChamberEvent> {
  // A chained line was accepted by the service, so its members need no further checks.
  const event = parseJson(line) as AccountEvent | ChamberEvent | null | undefined;
  if (typeof event !== 'object' || event === null) throw broken('received a line that is not an event');
  const expected = cursor.eventId + 1;
  if (event.eventId !== expected) throw broken(`expected event ${expected}, received ${String(event.eventId)}`);
  const isChamber = typeof stream === 'number';
  const owner = isChamber ? event.chamberId : event.did;
  if (owner !== stream) throw broken(`event ${expected} belongs to ${isChamber ? 'chamber ' : ''}${String(owner)}`);
  if (cursor.leaf !== null && event.prev !== cursor.leaf) {
    throw broken(`prev of event ${expected} is not the hash of event ${cursor.eventId} as it was read`);
  }
  return { eventId: expected, leaf: toHex(leafHash(encoder.encode(line))), line, event };
}

function broken(detail: string): ClientError {
  return new ClientError('CLIENT_ERR_CHAIN', `the log is broken: ${detail}`);
}

/** What the WebSockets of browsers and of `ws` have in common, apart from their event handlers. */
interface Socket {
  close(): void;
  /** Only `ws`. */
  terminate?(): void;
  on?(event: 'ping', listener: () => void): void;
}

/** Beyond this backlog a socket is closed: the reader opens another one when it has caught up. */
const QUEUED_CHARS_MAX = 8_000_000;
const MESSAGE_BYTES_MAX = 4_000_000;
/** The service pings every 30 s. Only `ws` exposes pings; elsewhere a silent socket is reopened after this time. */
const SILENCE_MILLIS_MAX = 90_000;

/** Node's own WebSocket does not limit the size of messages, and needs a flag on Node 20. Deno, Bun and Workers imitate Node. */
async function openSocket(url: string): Promise<Socket> {
  const { process, navigator } = globalThis;
  const isNode = process?.versions?.node !== undefined && (navigator?.userAgent ?? 'Node.js').startsWith('Node.js');
  if (!isNode) return new WebSocket(url);
  const ws = await import('ws');
  return new ws.WebSocket(url, { perMessageDeflate: false, maxPayload: MESSAGE_BYTES_MAX });
}

/** One WebSocket's messages; ends with the connection, which is closed when the reader stops. */
async function* messagesOf(
  socket: Socket,
  { signal, onOpen }: { readonly signal: AbortSignal; readonly onOpen: () => void },
): AsyncGenerator<string, void, undefined> {
  let queue: string[] = [];
  let queuedChars = 0;
  let isEnded = false;
  let wake = () => {};
  let silence: ReturnType<typeof setTimeout> | undefined;
  const restartSilence = () => {
    clearTimeout(silence);
    silence = setTimeout(end, SILENCE_MILLIS_MAX);
  };
  const end = () => {
    if (isEnded) return;
    isEnded = true;
    clearTimeout(silence);
    signal.removeEventListener('abort', end);
    // An interrupted handshake is an error event of `ws` too, so onerror stays assigned.
    if (socket.terminate === undefined) socket.close();
    else socket.terminate();
    wake();
  };
  const receive = ({ data }: { readonly data: unknown }) => {
    if (isEnded) return;
    // The service sends only text: anything else is not its stream.
    if (typeof data !== 'string') return end();
    queue.push(data);
    queuedChars += data.length;
    if (queuedChars > QUEUED_CHARS_MAX) return end();
    restartSilence();
    wake();
  };
  Object.assign(socket, { onopen: onOpen, onmessage: receive, onclose: end, onerror: end });
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
      if (isEnded) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    end();
  }
}
