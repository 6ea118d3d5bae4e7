// Follows an agent's todo list over any number of connections: server-sent events, and a single request if a connection fails.
import type { TodoView } from '../../projections/todo.ts';
import { LimitError } from '../reading/limits.ts';
import { openResponse } from '../reading/response.ts';
import { backoffMillis } from '../reading/waiting.ts';
import type { CallOptions, Service } from './call.ts';
import { ClientError, parseJson, tooLarge } from './error.ts';
import { TODO } from './shapes.ts';
import { type Signer, signatureHeaders } from './signing.ts';
import { steadyMillis } from './time.ts';

/** The response of GET /me/todo. */
export interface Todo {
  readonly now: string;
  /** Most urgent first. */
  readonly todo: readonly TodoView[];
  /** Whether the list is truncated. */
  readonly more: boolean;
  /** The version of the whole list, including the truncated part, for `since`. */
  readonly version: string;
}

export interface TodoQuery {
  /** 1–200, 200 by default. */
  readonly limit?: number | undefined;
  /** Seconds to wait for a change, 1–60. Without `since`, the response is immediate if anything is due. */
  readonly wait?: number | undefined;
  /** The last version received. The wait ends once the list differs from it, so no change is missed. */
  readonly since?: string | undefined;
}

/** A connection that lasts this long resets the backoff. */
const STABLE_MILLIS = 10_000;

interface TodoSource {
  readonly service: Service;
  readonly signer: Signer;
  /** A single request, which reports why a connection failed and is retried like every read. */
  readonly read: (options: CallOptions) => Promise<Todo>;
}

/** Yields the todo list now, then after each change; throws the errors of `read`, and the signal's reason. */
export async function* todoStream(source: TodoSource, options: CallOptions): AsyncGenerator<Todo, void, undefined> {
  let last: string | undefined;
  for await (const todo of connections(source, options)) {
    if (todo.version !== last) yield todo;
    last = todo.version;
  }
}

/** Yields from one connection after another; each begins with the whole list. */
async function* connections(
  { service, signer, read }: TodoSource,
  { signal }: CallOptions,
): AsyncGenerator<Todo, void, undefined> {
  const { local } = service.clock;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    const openedAt = steadyMillis(local);
    try {
      yield* connect(service, signer, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ClientError) throw error;
      yield await read({ ...(signal && { signal }) });
    }
    if (steadyMillis(local) - openedAt > STABLE_MILLIS) failures = 0;
    await local.sleep(backoffMillis(failures), signal);
  }
}

/** Throws if the connection can't be opened, breaks or is silent; throws a ClientError if the data exceeds the limits or is invalid. */
async function* connect(
  { baseUrl, clock, fetch, limits }: Service,
  signer: Signer,
  signal: AbortSignal | undefined,
): AsyncGenerator<Todo, void, undefined> {
  const url = new URL(`${baseUrl}/me/todo`).href;
  const signed = signatureHeaders(signer, { method: 'GET', targetUri: url, body: '' }, clock.now());
  const init = { headers: { ...signed, Accept: 'text/event-stream' } };
  const { silenceMillisMax } = limits;
  const response = await openResponse(fetch, url, init, { signal, silenceMillisMax });
  try {
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream') === true;
    if (!response.ok || !isStream) throw new Error(`${url} returned ${response.status}, and not a stream`);
    const decoder = new TextDecoder();
    for await (const { bytes } of response.lines(limits)) {
      const line = decoder.decode(bytes);
      if (!line.startsWith(DATA)) continue;
      const todo = parseJson(line.slice(DATA.length), limits);
      if (todo === undefined) throw new Error(`${url} sent an event that is not JSON`);
      const problem = TODO(todo, '');
      if (problem !== undefined)
        throw new ClientError('CLIENT_ERR_ANSWER', `${url} sent an event that can’t be used: ${problem}`);
      yield todo as Todo;
    }
  } catch (error) {
    throw error instanceof LimitError
      ? tooLarge(`the stream of ${baseUrl} exceeds the limits: ${error.message}`, error)
      : error;
  } finally {
    response.close();
  }
}

/** The service sends each event's data on one line. */
const DATA = 'data: ';
