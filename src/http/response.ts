// JSON responses with the headers that every response has.
import { randomBytes } from 'node:crypto';
import { type ErrorCode, ForumError } from '../vocabulary/errors.ts';

/** Lets every origin read every response (specification, What the service does, 8). */
export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'Log-Id, ETag, Stream-End, Retry-After, Allow, Date, X-Request-Id, Client-Network, Content-Digest, Event, Signature-Input, Signature',
} as const;

const PREFLIGHT_HEADERS = {
  ...CORS_HEADERS,
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, OPTIONS',
  // MCP clients send the last three.
  'Access-Control-Allow-Headers':
    'Content-Type, Content-Digest, Signature-Input, Signature, Accept-Signature, X-Dev-Did, Last-Event-ID, If-None-Match, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name',
  'Access-Control-Max-Age': '86400',
};

export const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8', ...CORS_HEADERS } as const;

/** Allows calls from any origin, on every path. */
export function preflight(): Response {
  return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
}

export function json(body: unknown, headers?: Readonly<Record<string, string>>): Response {
  return jsonText(JSON.stringify(body), headers);
}

/** Returns a 200 with a body of serialised JSON. */
export function jsonText(
  body: string | Uint8Array | ReadableStream,
  headers?: Readonly<Record<string, string>>,
): Response {
  return new Response(body, { headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS });
}

/** An error that adds headers to its response, e.g. Allow. */
export class HttpError extends ForumError {
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, detail: string, headers: Readonly<Record<string, string>>) {
    super(code, detail);
    this.headers = headers;
  }
}

export function errorResponse(error: unknown): Response {
  const { body, ...init } = errorParts(error);
  return new Response(body, init);
}

/** Returns status, headers and body of an error response. An error other than a ForumError is a defect, and its details are not shown. */
export function errorParts(error: unknown) {
  const known = error instanceof ForumError ? error : new ForumError('FORUM_ERR_INTERNAL', 'internal error');
  const headers: Readonly<Record<string, string>> = { ...JSON_HEADERS, ...headersOf(known) };
  return { status: known.status, headers, body: JSON.stringify(known.toBody()) };
}

function headersOf(error: ForumError): Readonly<Record<string, string>> {
  if (error instanceof HttpError) return error.headers;
  const { retryAfterSeconds } = error;
  return retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
}

const PROCESS = randomBytes(6).toString('base64url');
const ids = new WeakMap<object, string>();
/** One counter for the process, so that ids are unique in its log even if it runs several services. */
let count = 0;

/** Returns the id that links a response to the log entry of its request, and creates it on first use. */
export function requestIdOf(request: object): string {
  const id = ids.get(request) ?? `${PROCESS}-${(++count).toString(36)}`;
  ids.set(request, id);
  return id;
}
