// One response, read within limits of bytes, values and time. Everything that asks another operator's service reads through it.
import { withCommas } from '../vocabulary/values.ts';
import { Chunks } from './chunks.ts';
import { LimitError, type ReadLimits } from './limits.ts';
import { type RawLine, splitLines } from './lines.ts';
import { linkedSignal } from './linked-signal.ts';
import { type ListLimits, readList } from './list.ts';
import { parseModestJson } from './parse.ts';
import { timerMillis } from './waiting.ts';

/** What is needed of `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface Deadlines {
  readonly signal?: AbortSignal | undefined;
  /** The time from now to the last byte. */
  readonly wholeMillisMax?: number;
  /** The time between two chunks of a response that is read as text, or two whole lines of one that is read as lines. */
  readonly silenceMillisMax?: number;
}

/** Sends the request. Redirects are not followed by default: they lead to a URL that nobody chose or signed. */
export async function openResponse(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  { signal, wholeMillisMax, silenceMillisMax }: Deadlines,
): Promise<OpenResponse> {
  const link = linkedSignal(signal, wholeMillisMax);
  let silence: ReturnType<typeof setTimeout> | undefined;
  const hear = () => {
    clearTimeout(silence);
    if (silenceMillisMax === undefined) return;
    silence = setTimeout(
      link.abort,
      timerMillis(silenceMillisMax),
      new Error(`silent for ${silenceMillisMax / 1000} s`),
    );
  };
  const close = () => {
    clearTimeout(silence);
    link.release();
    link.abort();
  };
  hear();
  try {
    return new OpenResponse(await fetch(url, { redirect: 'manual', ...init, signal: link.signal }), hear, close);
  } catch (error) {
    close();
    throw error;
  }
}

/** Its body is read at most once, by one of text, json, list and lines; then, or by close, its connection and timers end. */
export class OpenResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: Headers;
  readonly close: () => void;
  readonly #body: Response['body'];
  /** Called when something has come. */
  readonly #hear: () => void;

  constructor({ status, ok, headers, body }: Response, hear: () => void, close: () => void) {
    this.status = status;
    this.ok = ok;
    this.headers = headers;
    this.close = close;
    this.#body = body;
    this.#hear = hear;
  }

  /** Throws a LimitError beyond responseBytesMax. */
  async bytes(limits: Pick<ReadLimits, 'responseBytesMax'>): Promise<Uint8Array> {
    const bytes = new Chunks();
    for await (const chunk of this.#limitedChunks(limits)) bytes.add(chunk);
    return bytes.take();
  }

  /** Throws a LimitError beyond responseBytesMax. */
  async text(limits: Pick<ReadLimits, 'responseBytesMax'>): Promise<string> {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    const parts: string[] = [];
    for await (const chunk of this.#limitedChunks(limits)) parts.push(decoder.decode(chunk, { stream: true }));
    parts.push(decoder.decode());
    return parts.join('');
  }

  async *#limitedChunks({ responseBytesMax }: Pick<ReadLimits, 'responseBytesMax'>): AsyncGenerator<Uint8Array, void> {
    let bytes = 0;
    for await (const chunk of this.#chunks()) {
      this.#hear();
      bytes += chunk.length;
      if (bytes > responseBytesMax) {
        throw new LimitError('responseBytesMax', `it is longer than ${withCommas(responseBytesMax)} bytes`);
      }
      yield chunk;
    }
  }

  /** undefined if it is not JSON. Throws a LimitError beyond responseBytesMax or jsonValuesMax. */
  async json(limits: Pick<ReadLimits, 'responseBytesMax' | 'jsonValuesMax'>): Promise<unknown> {
    return parseModestJson(await this.text(limits), limits);
  }

  /** The items of a JSON array, undefined if it is none. Throws a LimitError beyond a limit. */
  async list(limits: ListLimits): Promise<readonly unknown[] | undefined> {
    return await readList(this.#chunks(), limits);
  }

  /** Its lines as they come. Throws a LimitError on one beyond lineBytesMax. */
  async *lines(limits: Pick<ReadLimits, 'lineBytesMax'>): AsyncGenerator<RawLine, void, undefined> {
    for await (const line of splitLines(this.#chunks(), limits)) {
      this.#hear();
      yield line;
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      // Not every browser iterates over a stream.
      const reader = this.#body?.getReader();
      for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) yield read.value;
    } finally {
      this.close();
    }
  }
}

/** A `fetch` for libraries that bring their own request: its response was read whole, within the limits. */
export function limitedFetch(limits: ReadLimits, wholeMillisMax?: number): typeof fetch {
  return async (url, init = {}) => {
    const { signal, ...request } = init;
    const deadlines = { signal: signal ?? undefined, ...(wholeMillisMax && { wholeMillisMax }) };
    const response = await openResponse(fetch, `${url}`, request, deadlines);
    const { status, headers } = response;
    const text = await response.text(limits);
    parseModestJson(text, limits);
    return new Response(text === '' ? null : text, { status, headers });
  };
}

/** Options of viem's HTTP transport, whose timeout ends with the headers: its limits are those of limitedFetch. */
export const UNLIMITED_BY_VIEM = { timeout: 0, maxResponseBodySize: false } as const;
