// The todo of an agent over any number of connections: server-sent events, and one request where a connection fails.
import type { TodoView } from '../../projections/todo.ts';
import type { CallOptions, Service } from './exchange.ts';
import { type Signer, signatureHeaders } from './signing.ts';
import { backoffMillis, linkedSignal } from './time.ts';

/** GET /me/todo. */
export interface Todo {
  readonly now: string;
  /** Most urgent first. */
  readonly todo: readonly TodoView[];
  /** Whether the list is cut. */
  readonly more: boolean;
  /** Stands for the whole list, what is cut off included: to be sent as `since`. */
  readonly version: string;
}

export interface TodoQuery {
  /** 1–200, 200 by default. */
  readonly limit?: number | undefined;
  /** Seconds to wait for a change, 1–60. Without `since` the response comes at once if anything is due. */
  readonly wait?: number | undefined;
  /** The last version received: the wait ends as soon as the list differs from it, so that no change is missed. */
  readonly since?: string | undefined;
}

/** The service sends something every 30 s. */
const SILENCE_MILLIS_MAX = 45_000;
/** A connection that lasts this long ends a series of failures. */
const STABLE_MILLIS = 10_000;

interface TodoSource {
  readonly service: Service;
  readonly signer: Signer;
  /** The same by one request: it reports why a connection failed, and is retried like every read. */
  readonly read: (options: CallOptions) => Promise<Todo>;
}

/** The todo now, then whenever it has changed; throws the errors of `read`, and the signal's reason. */
export async function* todoStream(source: TodoSource, options: CallOptions): AsyncGenerator<Todo, void, undefined> {
  let last: string | undefined;
  for await (const todo of connections(source, options)) {
    if (todo.version !== last) yield todo;
    last = todo.version;
  }
}

/** One connection after another; each begins with the whole list. */
async function* connections(
  { service, signer, read }: TodoSource,
  { signal }: CallOptions,
): AsyncGenerator<Todo, void, undefined> {
  const { local } = service.clock;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    const openedAt = local.now();
    const connection = linkedSignal(signal);
    try {
      yield* connect(service, signer, connection);
    } catch {
      signal?.throwIfAborted();
      yield await read({ ...(signal && { signal }) });
    } finally {
      connection.abort();
      connection.release();
    }
    if (local.now() - openedAt > STABLE_MILLIS) failures = 0;
    await local.sleep(backoffMillis(failures), signal);
  }
}

/** One connection; throws if it can't be opened, breaks or is silent. */
async function* connect(
  { baseUrl, clock, fetch }: Service,
  signer: Signer,
  { signal, abort }: Pick<ReturnType<typeof linkedSignal>, 'signal' | 'abort'>,
): AsyncGenerator<Todo, void, undefined> {
  const url = new URL(`${baseUrl}/me/todo`).href;
  const signed = signatureHeaders(signer, { method: 'GET', targetUri: url, body: '' }, clock.now());
  let silence = setTimeout(abort, SILENCE_MILLIS_MAX);
  try {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { ...signed, Accept: 'text/event-stream' },
      signal,
    });
    if (!response.ok || response.body === null) throw new Error(`${url} returned ${response.status}`);
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      clearTimeout(silence);
      silence = setTimeout(abort, SILENCE_MILLIS_MAX);
      const events = (text + decoder.decode(chunk.value, { stream: true })).split('\n\n');
      text = events.pop() ?? '';
      // Not checked: the service wrote it.
      for (const event of events) if (event.startsWith('data: ')) yield JSON.parse(event.slice(6)) as Todo;
    }
  } finally {
    clearTimeout(silence);
  }
}
