// HTTP as the auditor uses it: hostile answers, and none for ever.
import { Unreachable } from './unusable-input.ts';

/** Nothing heard for so long counts as unreachable. */
const IDLE_MILLIS_MAX = 30_000;
const TEXT_BYTES_MAX = 64 * 1024 * 1024;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Throws Unreachable, whose message names the address without its query or credentials. */
export async function ask(url: string, init: RequestInit = {}): Promise<Answer> {
  // Not AbortSignal.timeout, which Node 20 may collect while it is waited for.
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(new Error('no answer in time')), IDLE_MILLIS_MAX);
  try {
    const { status, headers, body } = await fetch(url, { ...init, signal: abort.signal });
    return { status, headers, chunks: read(url, body ?? emptyStream(), { abort, timer }) };
  } catch (error) {
    clearTimeout(timer);
    throw unreachable(url, error);
  }
}

export async function readText({ chunks }: Answer): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > TEXT_BYTES_MAX) throw new Unreachable('an answer is longer than 64 MiB');
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString();
}

interface Watch {
  readonly abort: AbortController;
  readonly timer: NodeJS.Timeout;
}

async function* read(url: string, body: AsyncIterable<Uint8Array>, { abort, timer }: Watch) {
  try {
    for await (const chunk of body) {
      timer.refresh();
      yield chunk;
    }
  } catch (error) {
    throw unreachable(url, error);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

async function* emptyStream(): AsyncGenerator<Uint8Array> {}

function unreachable(url: string, error: unknown): Unreachable {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
  return new Unreachable(`${new URL(url).host} can’t be reached: ${reason}`);
}
