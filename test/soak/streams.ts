// Reads streams to their end.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Fetch } from '../../src/client/index.ts';
import { readEvents } from '../kit/consumers.ts';

interface Reading {
  readonly signal?: AbortSignal;
  readonly onEvent?: () => void;
}

/** Reads server-sent events; resolves when the service ends the stream. */
export async function readSource(fetch: Fetch, url: string, { signal, onEvent }: Reading = {}): Promise<void> {
  const response = await fetch(url, { headers: { accept: 'text/event-stream' }, ...(signal && { signal }) });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  const text = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream());
  for await (const { id } of readEvents(text)) if (id !== '') onEvent?.();
}

/** Reads a WebSocket's messages; resolves to the code with which the service closes it. */
export async function readSocket(url: string, { signal, onEvent }: Reading = {}): Promise<number> {
  const socket = new WebSocket(url.replace('http', 'ws'), { perMessageDeflate: false });
  const end = () => socket.terminate();
  signal?.addEventListener('abort', end);
  socket.on('message', () => onEvent?.());
  try {
    const [code] = await once(socket, 'close');
    return code;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}
