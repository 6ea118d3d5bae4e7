// A late reader that reads a chamber's whole log repeatedly, over a WebSocket or as NDJSON.
import { Agent, get, type IncomingMessage } from 'node:http';
import { epochNow, type Span } from './span.ts';
import { subscribe } from './subscriber.ts';

export interface ReplayTask {
  readonly kind: 'replay';
  readonly authority: string;
  readonly over: 'websocket' | 'ndjson';
  readonly chamberId: number;
  /** The number of lines of the chamber. */
  readonly lines: number;
  /** The time before which the last replay starts. */
  readonly forMillis: number;
}

export interface ReplayResult {
  /** The rate of each replay, measured from the handshake or the first request. */
  readonly linesPerSecond: readonly number[];
  readonly span: Span;
}

export async function driveReplay(task: ReplayTask): Promise<ReplayResult> {
  const read = task.over === 'websocket' ? readStream : readNdjson;
  const linesPerSecond: number[] = [];
  const from = epochNow();
  while (epochNow() < from + task.forMillis) {
    const startedAt = performance.now();
    await read(task);
    linesPerSecond.push((task.lines * 1000) / (performance.now() - startedAt));
  }
  return { linesPerSecond, span: { from, until: epochNow() } };
}

function readStream({ authority, chamberId, lines }: ReplayTask): Promise<void> {
  let read = 0;
  return new Promise((resolve, reject) => {
    const subscribed = subscribe({
      authority,
      path: `/chambers/${chamberId}/stream?after=0`,
      onMessages: (count) => {
        read += count;
        if (read < lines) return;
        subscribed.then((socket) => socket.destroy(), reject);
        resolve();
      },
      onEnd: reject,
    });
    subscribed.catch(reject);
  });
}

/** The maximum number of lines in a response of the service. */
const PAGE_LINES = 10_000;
const LINE_BREAK = 0x0a;
const agent = new Agent({ keepAlive: true });

async function readNdjson({ authority, chamberId, lines }: ReplayTask): Promise<void> {
  for (let after = 0; after < lines; ) {
    const read = await countLines(
      `http://${authority}/chambers/${chamberId}/events?after=${after}&limit=${PAGE_LINES}`,
    );
    if (read === 0) throw new Error(`the log ended after ${after} of ${lines} lines`);
    after += read;
  }
}

function countLines(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response: IncomingMessage) => {
      if (response.statusCode !== 200) reject(new Error(`${url} returned ${response.statusCode}`));
      let lines = 0;
      response.on('data', (chunk: Buffer) => {
        for (let at = chunk.indexOf(LINE_BREAK); at !== -1; at = chunk.indexOf(LINE_BREAK, at + 1)) lines++;
      });
      response.on('end', () => resolve(lines));
    }).on('error', reject);
  });
}
