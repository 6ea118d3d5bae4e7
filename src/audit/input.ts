// Hostile input, bounded in size and time: lines one at a time, so that a log of any length passes through in flat memory,
// HTTP responses, and the errors of input that can't be audited at all, as opposed to a log that is broken.
import { concatBytes } from '@noble/hashes/utils.js';

/** The message ends a sentence that begins with the name of the input: "FILE: it is empty". */
export class UnusableInput extends Error {
  override readonly name = 'UnusableInput';
}

/** The service or the chain did not respond. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

export interface RawLine {
  /** Without the line break. */
  readonly bytes: Uint8Array;
  /** Whether a line break ended it; the last line of a file may be torn. */
  readonly isEnded: boolean;
}

/** Far above any line that a service with default limits writes. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const LINE_BREAK = 0x0a;

/** Throws UnusableInput on a line that is too long for any chamber's log. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<RawLine, void, undefined> {
  let parts: Uint8Array[] = [];
  let partsBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end !== -1; end = chunk.indexOf(LINE_BREAK, start)) {
      const rest = chunk.subarray(start, end);
      yield { bytes: parts.length === 0 ? rest : concatBytes(...parts, rest), isEnded: true };
      parts = [];
      partsBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    partsBytes += chunk.length - start;
    if (partsBytes > LINE_BYTES_MAX)
      throw new UnusableInput('it holds a line of more than 16 MiB: these are not event lines');
  }
  if (partsBytes > 0) yield { bytes: concatBytes(...parts), isEnded: false };
}

/** A peer that is silent for so long counts as unreachable. */
const IDLE_MILLIS_MAX = 30_000;
const TEXT_BYTES_MAX = 64 * 1024 * 1024;

export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Throws Unreachable, whose message names the host alone: the rest of a URL may hold credentials. */
export async function send(url: string, init: RequestInit = {}): Promise<HttpResponse> {
  // AbortSignal.timeout can't be extended while a response arrives.
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(new Error('the response timed out')), IDLE_MILLIS_MAX);
  try {
    const { status, headers, body } = await fetch(url, { ...init, signal: abort.signal });
    return { status, headers, chunks: readChunks(url, body ?? [], { abort, timer }) };
  } catch (error) {
    clearTimeout(timer);
    throw toUnreachable(url, error);
  }
}

export async function readText({ chunks }: HttpResponse): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > TEXT_BYTES_MAX) throw new Unreachable('a response is longer than 64 MiB');
    parts.push(chunk);
  }
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(concatBytes(...parts));
}

interface Watch {
  readonly abort: AbortController;
  readonly timer: NodeJS.Timeout;
}

type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

async function* readChunks(url: string, body: Chunks, { abort, timer }: Watch): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      timer.refresh();
      yield chunk;
    }
  } catch (error) {
    throw toUnreachable(url, error);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

function toUnreachable(url: string, error: unknown): Unreachable {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
  return new Unreachable(`${new URL(url).host} can’t be reached: ${reason}`);
}
