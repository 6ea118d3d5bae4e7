// Readers of streams in test:outage: each resumes after the id of its last line, and must in the end have every line of the log
// once, in order and unchanged.
import { setTimeout as sleep } from 'node:timers/promises';

const PAUSE_MS = 100;
const CATCH_UP_MS_MAX = 20_000;

interface StreamOptions {
  readonly url: string;
  /** The path without a query. */
  readonly path: string;
  readonly protocol: 'server-sent events' | 'WebSocket';
  readonly notes: boolean;
}

export class StreamReader {
  readonly #options: StreamOptions;
  readonly #stopping = new AbortController();
  /** The lines of each chamber, in the order received. */
  readonly #lines = new Map<number, string[]>();
  readonly #reading: Promise<void>;
  #cursor = '0';
  notes = 0;
  connections = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#reading = this.#read();
  }

  async #read(): Promise<void> {
    for (; !this.#stopping.signal.aborted; await sleep(PAUSE_MS)) {
      const isEventSource = this.#options.protocol === 'server-sent events';
      await (isEventSource ? this.#readEvents() : this.#readMessages()).catch(() => {});
    }
  }

  get #target(): string {
    const { url, path, notes } = this.#options;
    return `${url}${path}?after=${this.#cursor}${notes ? '&notes=1' : ''}`;
  }

  async #readEvents(): Promise<void> {
    const headers = { accept: 'text/event-stream' };
    const response = await fetch(this.#target, { headers, signal: this.#stopping.signal });
    if (response.status !== 200 || response.body === null) return;
    this.connections++;
    let rest = '';
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + text).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) this.#take(/^data: (.*)$/m.exec(event)?.[1]);
    }
  }

  async #readMessages(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = new WebSocket(this.#target.replace('http:', 'ws:'));
    const close = () => socket.close();
    this.#stopping.signal.addEventListener('abort', close);
    socket.addEventListener('open', () => this.connections++);
    socket.addEventListener('message', ({ data }) => this.#take(String(data)));
    socket.addEventListener('close', () => resolve());
    socket.addEventListener('error', () => resolve());
    await promise;
    this.#stopping.signal.removeEventListener('abort', close);
  }

  /** Keep-alives have no text. */
  #take(text: string | undefined): void {
    if (text === undefined) return;
    const { note, chamberId, eventId } = JSON.parse(text);
    if (note !== undefined) {
      this.notes++;
      return;
    }
    this.#cursor = this.#options.path === '/events' ? `${chamberId}:${eventId}` : `${eventId}`;
    this.#lines.set(chamberId, [...(this.#lines.get(chamberId) ?? []), text]);
  }

  /** Waits for the remaining lines, stops reading, and returns the problems. `logged` holds the lines of the followed chambers. */
  async judge(logged: ReadonlyMap<number, readonly string[]>): Promise<readonly string[]> {
    const isBehind = () => [...logged].some(([id, lines]) => (this.#lines.get(id)?.length ?? 0) < lines.length);
    const end = performance.now() + CATCH_UP_MS_MAX;
    while (isBehind() && performance.now() < end) await sleep(PAUSE_MS);
    this.#stopping.abort();
    await this.#reading;
    const { url, path, protocol } = this.#options;
    return [...logged].flatMap(([chamberId, lines]) => {
      const received = this.#lines.get(chamberId) ?? [];
      const differing = lines.findIndex((line, index) => line !== received[index]);
      if (differing < 0 && received.length === lines.length) return [];
      const place = differing < 0 ? lines.length : differing;
      const got = received[place] === undefined ? 'nothing' : `event ${JSON.parse(received[place]).eventId}`;
      return [`${url}${path} by ${protocol}: chamber ${chamberId} has event ${place + 1} where ${got} was received`];
    });
  }
}
