// Reads a response within limits of bytes, values and time. All requests to other operators' services go through it.
import { withCommas } from '../vocabulary/values.ts';
import { Chunks } from './chunks.ts';
import { LimitError, parseBoundedJson, type ReadLimits } from './limits.ts';
import { type RawLine, splitLines } from './lines.ts';
import { type ListLimits, readList } from './list.ts';
import { linkedSignal, timerMillis } from './waiting.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface Deadlines {
  readonly signal?: AbortSignal | undefined;
  /** The maximum time from the request to the last byte. */
  readonly wholeMillisMax?: number;
  /** The maximum time between two chunks of a text, or between two whole lines. */
  readonly silenceMillisMax?: number;
}

/** Sends the request. By default, does not follow redirects, because the caller neither chose nor signed their URLs. */
export async function openResponse(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  { signal, wholeMillisMax, silenceMillisMax }: Deadlines,
): Promise<OpenResponse> {
  const link = linkedSignal(signal, wholeMillisMax);
  let silence: ReturnType<typeof setTimeout> | undefined;
  const onData = () => {
    clearTimeout(silence);
    if (silenceMillisMax === undefined) return;
    const error = new Error(`silent for ${silenceMillisMax / 1000} s`);
    silence = setTimeout(link.abort, timerMillis(silenceMillisMax), error);
  };
  const close = () => {
    clearTimeout(silence);
    link.release();
    link.abort();
  };
  onData();
  try {
    return new OpenResponse(await fetch(url, { redirect: 'manual', ...init, signal: link.signal }), onData, close);
  } catch (error) {
    close();
    throw error;
  }
}

/** A response whose body can be read once. Reading the body or calling close() ends the connection and stops the timers. */
export class OpenResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: Headers;
  readonly close: () => void;
  readonly #body: Response['body'];
  readonly #onData: () => void;

  constructor({ status, ok, headers, body }: Response, onData: () => void, close: () => void) {
    this.status = status;
    this.ok = ok;
    this.headers = headers;
    this.close = close;
    this.#body = body;
    this.#onData = onData;
  }

  /** Throws a LimitError if the body exceeds responseBytesMax. */
  async bytes({ responseBytesMax }: Pick<ReadLimits, 'responseBytesMax'>): Promise<Uint8Array> {
    const bytes = new Chunks();
    for await (const chunk of this.#chunks()) {
      this.#onData();
      bytes.add(chunk);
      if (bytes.length > responseBytesMax) {
        throw new LimitError('responseBytesMax', `it is longer than ${withCommas(responseBytesMax)} bytes`);
      }
    }
    return bytes.take();
  }

  /** Throws a LimitError if the body exceeds responseBytesMax. */
  async text(limits: Pick<ReadLimits, 'responseBytesMax'>): Promise<string> {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await this.bytes(limits));
  }

  /** Returns undefined if the body is not JSON. Throws a LimitError if the body exceeds responseBytesMax or jsonValuesMax. */
  async json(limits: Pick<ReadLimits, 'responseBytesMax' | 'jsonValuesMax'>): Promise<unknown> {
    return parseBoundedJson(await this.text(limits), limits);
  }

  /** Returns the items of a JSON array; undefined if the body is not an array. Throws a LimitError if the body exceeds a limit. */
  async list(limits: ListLimits): Promise<readonly unknown[] | undefined> {
    return await readList(this.#chunks(), limits);
  }

  /** Yields lines as they arrive. Throws a LimitError if a line exceeds lineBytesMax. */
  async *lines(limits: Pick<ReadLimits, 'lineBytesMax'>): AsyncGenerator<RawLine, void, undefined> {
    for await (const line of splitLines(this.#chunks(), limits)) {
      this.#onData();
      yield line;
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      // Some browsers do not support async iteration of streams.
      const reader = this.#body?.getReader();
      for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) yield read.value;
    } finally {
      this.close();
    }
  }
}

/** Returns a `fetch` for libraries that make their own requests. It reads the whole response, within the limits, before it resolves. */
export function limitedFetch(limits: ReadLimits, wholeMillisMax?: number): typeof fetch {
  return async (url, init = {}) => {
    const { signal, ...request } = init;
    const deadlines = { signal: signal ?? undefined, ...(wholeMillisMax && { wholeMillisMax }) };
    const response = await openResponse(fetch, `${url}`, request, deadlines);
    const { status, headers } = response;
    const text = await response.text(limits);
    parseBoundedJson(text, limits);
    return new Response(text === '' ? null : text, { status, headers });
  };
}

/** Options for viem's HTTP transport, whose timeout covers only the headers: limitedFetch applies the limits instead. */
export const UNLIMITED_BY_VIEM = { timeout: 0, maxResponseBodySize: false } as const;
