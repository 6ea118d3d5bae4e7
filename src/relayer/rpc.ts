// JSON-RPC over HTTP with viem's transport, without its retries. Error messages never contain the URL, because it may include an API key,
// nor a response that is not JSON-RPC.
import * as v from 'valibot';
import { BaseError, http, RpcRequestError } from 'viem';
import { LimitError, parseBoundedJson, READ_LIMITS } from '../reading/limits.ts';
import { limitedFetch, UNLIMITED_BY_VIEM } from '../reading/response.ts';
import { linkedSignal } from '../reading/waiting.ts';

export class RpcError extends Error {
  /** `unavailable`: no usable response. `rejected`: the node returned a JSON-RPC error. */
  readonly kind: 'unavailable' | 'rejected';
  /** The `data` of a JSON-RPC error; for a revert, the reason. */
  readonly data: unknown;
  readonly code: number | undefined;

  constructor(kind: RpcError['kind'], message: string, { data, code }: { data?: unknown; code?: number } = {}) {
    super(message);
    this.name = 'RpcError';
    this.kind = kind;
    this.data = data;
    this.code = code;
  }
}

const METHOD_NOT_FOUND = -32_601;

export function isUnknownMethod(error: unknown): error is RpcError {
  return isRejection(error) && error.code === METHOD_NOT_FOUND;
}

export function isRejection(error: unknown): error is RpcError {
  return error instanceof RpcError && error.kind === 'rejected';
}

export interface Rpc {
  /** Resolves to the unchecked `result`; rejects with an RpcError. */
  request(method: string, params: readonly unknown[]): Promise<unknown>;
  /** Aborts pending requests and rejects new ones. */
  close(): void;
}

const TIMEOUT_MILLIS = 10_000;
const DETAIL_CHARS_MAX = 300;
const TOO_MANY_REQUESTS = 429;

interface RpcOptions {
  readonly timeoutMillis?: number | undefined;
  readonly responseBytesMax?: number;
}

export function openRpc(
  rpcUrl: string,
  { timeoutMillis = TIMEOUT_MILLIS, responseBytesMax = READ_LIMITS.responseBytesMax }: RpcOptions = {},
): Rpc {
  const { url, headers, secrets } = endpointOf(rpcUrl);
  const transport = http(url, {
    retryCount: 0,
    ...UNLIMITED_BY_VIEM,
    fetchFn: acceptingErrorBodies(limitedFetch({ ...READ_LIMITS, responseBytesMax })),
    fetchOptions: { headers, redirect: 'follow' },
  })({});
  const closing = new AbortController();
  return {
    async request(method, params) {
      if (closing.signal.aborted) throw new RpcError('unavailable', 'the RPC connection is closed');
      const { signal, release } = linkedSignal(closing.signal, timeoutMillis);
      try {
        const result: unknown = await transport.request({ method, params }, { signal });
        if (result === undefined) throw new RpcError('unavailable', NOT_JSON_RPC);
        return result;
      } catch (error) {
        const isLate = signal.aborted && !closing.signal.aborted;
        throw isLate ? new RpcError('unavailable', 'RPC request timed out') : toRpcError(error, method, secrets);
      } finally {
        release();
      }
    },
    close: () => closing.abort('closed'),
  };
}

const NOT_JSON_RPC = 'the RPC response is not JSON-RPC';

/** Shorter path segments and query values are probably versions or network names, not keys. */
const KEY_CHARS_MIN = 8;

/** Moves credentials from the URL to a header, because fetch rejects them in a URL, and viem accepts only percent-encoded credentials. */
function endpointOf(rpcUrl: string) {
  const url = new URL(rpcUrl);
  const { username, password } = url;
  const credentials = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64');
  url.username = '';
  url.password = '';
  // Error messages must not show the URL or any part of it that may be a secret.
  const keys = [...url.pathname.split('/'), ...url.search.slice(1).split(/[&=]/), ...url.searchParams.values()].filter(
    (part) => part.length >= KEY_CHARS_MIN,
  );
  const parts = [rpcUrl, url.href, url.origin, url.host, credentials, username, password, ...keys];
  const secrets = parts.flatMap((part) => [part, decode(part)]).filter((secret) => secret !== '');
  return {
    url: url.href,
    headers: username + password === '' ? {} : { authorization: `Basic ${credentials}` },
    secrets: secrets.sort((a, b) => b.length - a.length),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Many gateways send a node's JSON-RPC error, such as a revert, with an HTTP error status. A result with an error status is rejected. */
function acceptingErrorBodies(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    const { ok, status, headers } = response;
    if (ok) return response;
    if (status === TOO_MANY_REQUESTS) throw new RpcError('unavailable', 'RPC rate limit exceeded (429)');
    const text = await response.text();
    if (!v.is(jsonRpcError, parseBoundedJson(text, READ_LIMITS))) {
      throw new RpcError('unavailable', `the RPC returned HTTP ${status}`);
    }
    return new Response(text, { headers });
  };
}

const jsonRpcError = v.object({ error: v.object({ code: v.number(), message: v.string() }) });

/** Error texts for an instruction that the chain does not support. INVALID is excluded, because contracts use it to fail on purpose. */
const UNKNOWN_INSTRUCTION = /NotActivated|OpcodeNotFound|BadInstruction|invalid opcode: (?!INVALID)/;
const OLD_CHAIN = '; the contract uses an instruction that the chain lacks: it was compiled for a later EVM upgrade';

/** viem's messages contain the URL and the request, so only the node's message and the system's error code are kept. */
function toRpcError(error: unknown, method: string, secrets: readonly string[]): RpcError {
  if (error instanceof RpcError) return error;
  if (!(error instanceof BaseError)) return new RpcError('unavailable', 'RPC unreachable');
  const limit = error.walk((cause) => cause instanceof LimitError);
  if (limit instanceof LimitError)
    return new RpcError('unavailable', `the RPC response exceeds a limit: ${limit.message}`);
  const rejection = error.walk((cause) => cause instanceof RpcRequestError);
  if (rejection instanceof RpcRequestError && typeof rejection.details === 'string') {
    const { data, code } = rejection;
    const isOldChain = UNKNOWN_INSTRUCTION.test(rejection.details);
    const message = `${method}: ${redact(rejection.details, secrets)}${isOldChain ? OLD_CHAIN : ''}`;
    return new RpcError('rejected', message, { data, code });
  }
  const root = error.walk();
  if (root instanceof RpcError) return root;
  const isNetwork = root instanceof Error && 'code' in root;
  return new RpcError('unavailable', isNetwork ? `RPC unreachable (${String(root.code)})` : NOT_JSON_RPC);
}

function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text).slice(0, DETAIL_CHARS_MAX);
}
