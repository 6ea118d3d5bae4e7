// Consumers of a chamber's stream over real sockets: WebSocket, server-sent events and pages of NDJSON.
import { WebSocket } from 'ws';
import type { Running } from './service.ts';
import { atEnd } from './temporary.ts';

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

/** An open WebSocket with its received messages, unparsed. */
export class Consumer {
  readonly lines: string[] = [];
  readonly socket: WebSocket;
  closeCode: number | undefined;
  #wake: () => void = () => {};

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data, isBinary) => {
      this.lines.push(isBinary ? 'binary' : data.toString());
      this.#wake();
    });
    socket.on('close', (code) => {
      this.closeCode = code;
      this.#wake();
    });
  }

  get eventIds(): readonly number[] {
    return this.lines.map((line) => JSON.parse(line).eventId);
  }

  /** Waits for that many lines. */
  async until(count: number): Promise<void> {
    while (this.lines.length < count) {
      if (this.closeCode !== undefined)
        throw new Error(`the stream closed with ${this.closeCode} after ${this.lines.length} lines`);
      await this.#change();
    }
  }

  async closed(): Promise<number> {
    while (this.closeCode === undefined) await this.#change();
    return this.closeCode;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Resolves to the consumer and the headers of the handshake, or to the error. */
export function subscribe(
  { url }: Pick<Running, 'url'>,
  path: string,
): Promise<{ consumer: Consumer; headers: Refusal['headers'] } | { refusal: Refusal }> {
  const socket = new WebSocket(url.replace('http', 'ws') + path);
  atEnd(() => socket.terminate());
  const consumer = new Consumer(socket);
  return new Promise((resolve, reject) => {
    let headers: Refusal['headers'] = {};
    socket.once('upgrade', (response) => {
      headers = response.headers;
    });
    socket.once('open', () => resolve({ consumer, headers }));
    socket.once('error', reject);
    socket.once('unexpected-response', async (_request, response) => {
      const chunks = await response.toArray();
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
      resolve({ refusal: { status: response.statusCode ?? 0, headers: response.headers, body } });
    });
  });
}

export async function consume(running: Pick<Running, 'url'>, path: string): Promise<Consumer> {
  const outcome = await subscribe(running, path);
  if ('refusal' in outcome) throw new Error(`${path}: ${JSON.stringify(outcome.refusal.body)}`);
  return outcome.consumer;
}

export interface ServerSent {
  readonly id: string;
  readonly data: string;
}

/** Opens a stream of server-sent events. Once this resolves, no later event is missed. */
export async function openSource(
  running: Pick<Running, 'url'>,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<AsyncGenerator<ServerSent>> {
  return readEvents(await openText(running, path, headers));
}

/** Opens a stream of server-sent events, and returns it as text, including comments. */
export async function openText(
  { url }: Pick<Running, 'url'>,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ReadableStream<string>> {
  const ended = new AbortController();
  atEnd(() => ended.abort());
  const accept = { accept: 'text/event-stream', ...headers };
  const response = await fetch(url + path, { headers: accept, signal: ended.signal });
  if (!response.ok || response.body === null) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  // Reading starts at once, because undici cancels a body without a reader when the response is garbage-collected.
  return response.body.pipeThrough(new TextDecoderStream());
}

/** Yields an event for every blank line, even without fields, as readers less careful than browsers do. */
export async function* readEvents(chunks: ReadableStream<string>): AsyncGenerator<ServerSent> {
  let text = '';
  for await (const chunk of chunks) {
    const events = (text + chunk).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) yield parseEvent(event);
  }
}

function parseEvent(event: string): ServerSent {
  const fields = event.replace(/^:.*(?:\n|$)/gm, '');
  const [, id = '', data = ''] = /^(?:id: ([\d:]+)\n)?data: (.*)$/.exec(fields) ?? [];
  return { id, data };
}

export async function take<Item>(items: AsyncGenerator<Item>, count: number): Promise<readonly Item[]> {
  const taken: Item[] = [];
  while (taken.length < count) {
    const { done, value } = await items.next();
    if (done) throw new Error(`the stream ended after ${taken.length} of ${count} items`);
    taken.push(value);
  }
  return taken;
}

/** Returns the lines of a page of NDJSON. */
export async function page({ url }: Pick<Running, 'url'>, path: string): Promise<readonly string[]> {
  const response = await fetch(url + path);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line is not complete');
  return text.split('\n').slice(0, -1);
}
