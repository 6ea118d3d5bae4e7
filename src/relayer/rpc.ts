// JSON-RPC over HTTP. An error never holds the URL, which may carry an API key, nor an answer that is not JSON-RPC.

/** `away`: no usable answer, try again later. `refused`: the node answered with a JSON-RPC error. */
export type RpcErrorKind = 'away' | 'refused';

export class RpcError extends Error {
  readonly kind: RpcErrorKind;
  /** The `data` of a JSON-RPC error, where a revert's reason is. */
  readonly data: unknown;

  constructor(kind: RpcErrorKind, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.kind = kind;
    this.data = data;
  }
}

export interface Rpc {
  /** The `result`, of whatever form; throws an RpcError. */
  request(method: string, params: readonly unknown[]): Promise<unknown>;
  /** Ends running requests and refuses new ones. */
  close(): void;
}

const TIMEOUT_MILLIS = 10_000;
const DETAIL_CHARS_MAX = 300;
const TOO_MANY_REQUESTS = 429;

export function openRpc(rpcUrl: string, timeoutMillis = TIMEOUT_MILLIS): Rpc {
  const endpoint = endpointOf(rpcUrl);
  const running = new Set<AbortController>();
  let isClosed = false;
  let id = 0;
  return {
    async request(method, params) {
      if (isClosed) throw new RpcError('away', 'the connection to the RPC is closed');
      const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params });
      // Not AbortSignal.any over AbortSignal.timeout: Node 20 may collect the timeout, and the request hangs for ever.
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(new DOMException('too late', 'TimeoutError')), timeoutMillis);
      running.add(abort);
      try {
        return resultOf(method, await post(endpoint, body, abort.signal), endpoint);
      } finally {
        clearTimeout(timer);
        running.delete(abort);
      }
    },
    close() {
      isClosed = true;
      for (const abort of running) abort.abort();
    },
  };
}

interface Endpoint {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What must not show: the URL, and the parts of it that may be a secret, longest first. */
  readonly secrets: readonly string[];
}

/** Shorter segments of a path, and values of a query, name a version or a network. */
const KEY_CHARS_MIN = 8;

/** fetch refuses credentials in a URL, so they become a header. */
function endpointOf(rpcUrl: string): Endpoint {
  const url = new URL(rpcUrl);
  const { username, password } = url;
  const credentials = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64');
  url.username = '';
  url.password = '';
  const keys = [...url.pathname.split('/'), ...url.search.slice(1).split(/[&=]/), ...url.searchParams.values()].filter(
    (part) => part.length >= KEY_CHARS_MIN,
  );
  const secrets = [rpcUrl, url.href, url.origin, url.host, credentials, username, password, ...keys].flatMap((part) => [
    part,
    decode(part),
  ]);
  return {
    url: url.href,
    headers: {
      'content-type': 'application/json',
      ...(username + password === '' ? {} : { authorization: `Basic ${credentials}` }),
    },
    secrets: secrets.filter((secret) => secret !== '').sort((a, b) => b.length - a.length),
  };
}

/** A part of a URL as its owner knows it; as it stands where its percent signs encode nothing. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function post({ url, headers }: Endpoint, body: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers, body, signal }).catch(throwAway);
  const text = await response.text().catch(throwAway);
  if (response.status === TOO_MANY_REQUESTS) throw new RpcError('away', 'the RPC limits the rate of requests (429)');
  if (response.status >= 500) throw new RpcError('away', `the RPC answers ${response.status}`);
  return text;
}

function throwAway(error: unknown): never {
  const isTimeout = error instanceof Error && error.name === 'TimeoutError';
  throw new RpcError(
    'away',
    isTimeout ? 'the RPC does not answer in time' : `the RPC can't be reached${causeOf(error)}`,
  );
}

/** The system's error code alone: the message may name the address. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
}

function resultOf(method: string, text: string, { secrets }: Endpoint): unknown {
  const answer = parse(text);
  if (typeof answer !== 'object' || answer === null) throw new RpcError('away', 'the RPC answers with no JSON-RPC');
  if ('error' in answer && typeof answer.error === 'object' && answer.error !== null) {
    const { message, data } = answer.error as { message?: unknown; data?: unknown };
    throw new RpcError('refused', `${method}: ${redact(String(message), secrets)}`, data);
  }
  if (!('result' in answer)) throw new RpcError('away', 'the RPC answers with no JSON-RPC');
  return answer.result;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text).slice(0, DETAIL_CHARS_MAX);
}
