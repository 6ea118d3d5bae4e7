// One request and its response, over as many attempts as needed: a request whose response was lost is sent again with the
// same bytes, and the service repeats its first response. So a move is made exactly once over any network.
import { acceptReceipt, RECEIPT_TAG, type Receipt, type ReceiptRequest } from '../crypto/receipt.ts';
import { LimitError, type ReadLimits } from '../reading/limits.ts';
import { parseModestJson } from '../reading/parse.ts';
import { type Fetch, type OpenResponse, openResponse } from '../reading/response.ts';
import { listOf, type Shape } from '../reading/shape.ts';
import { tlsHint } from '../reading/tls-hint.ts';
import {
  ERROR_CODES,
  type ErrorData,
  type ExpectedSignature,
  type HistoryConflict,
  SIGNATURE_STEPS,
} from '../vocabulary/errors.ts';
import { ADMISSION_RULES, type Millis } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';
import type { Heads } from './heads.ts';
import { ANY_OBJECT } from './shapes.ts';
import { newNonce, type Signer, signatureHeaders } from './signing.ts';
import { backoffMillis, type ServiceClock } from './time.ts';

export interface Service {
  /** The URL without a slash at the end. */
  readonly baseUrl: string;
  readonly clock: ServiceClock;
  readonly fetch: Fetch;
  /** How long a call that certainly changed nothing is retried, in milliseconds. */
  readonly patienceMillis: number;
  /**
   * Whether it has ever responded: until then patience is short, because most likely it is not running, or its URL is another one.
   * `logId` is the log that it named last.
   */
  readonly contact: { isMade: boolean; logId?: string | undefined };
  readonly onRetry: (retry: Retry) => void;
  readonly limits: ReadLimits;
  /** What was read of each chamber, by this service's readers and agents. */
  readonly heads: Heads;
}

/** A request that is about to be sent again. */
export interface Retry {
  /** Why: no response, an overloaded service, a gateway without one. */
  readonly error: ClientError;
  /** The time to the next attempt. */
  readonly waitMillis: Millis;
}

export interface CallOptions {
  /** Aborts the wait with the signal's reason. A move in flight may still be accepted: check the chamber's events. */
  readonly signal?: AbortSignal;
}

export interface SendOptions extends CallOptions {
  /** Is called with each signed command before it is sent, and awaited. */
  readonly beforeSend?: (request: SignedRequest) => Promise<void>;
}

/** A signed command as it is sent. Sent again exactly, it gets its first response and nothing happens twice. */
export interface SignedRequest {
  readonly method: Call['method'];
  /** The path of the service that it is signed for. */
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Appended to the base URL, with its query. */
  readonly path: string;
  readonly body?: object | undefined;
  readonly signer?: Signer;
  /** Asks for a signed response. */
  readonly wantsReceipt?: boolean;
  /** The command as it was signed before, instead of a body and a signer. */
  readonly sent?: SignedRequest;
  readonly beforeSend?: SendOptions['beforeSend'];
  /**
   * How the response is read; as JSON by default. `list`: a JSON array, item by item. `page`: a Page of lines. `nothing`: the headers alone, to ask whether a
   * stream would be accepted.
   */
  readonly as?: 'json' | 'list' | 'text' | 'page' | 'nothing';
  /** How many lines a page may have; PAGE_LINES_MAX by default. */
  readonly linesMax?: number;
  /** The shape of a response as JSON, or of each item of a list; an object by default. */
  readonly shape?: Shape;
  /** The media type that is asked for, where the service has several. */
  readonly accept?: string;
  /** How long the service may wait before it responds, in milliseconds. */
  readonly waitMillis?: number;
}

const FIRST_CONTACT_MILLIS = 5_000;

/** Lines of a response, up to pageBytesMax and the call's linesMax. */
export interface Page {
  readonly lines: readonly string[];
  /** Whether the response held no more, and the service need not be asked for more. */
  readonly isEnd: boolean;
}

export const PAGE_LINES_MAX = 1_000;

/** A longer wait that the service asks for is cut: a timer over 24.8 days fires at once. */
const RETRY_AFTER_MILLIS_MAX = 60_000;
/** The service accepts signatures that are minutes old; only beyond this difference is a new signature worth a try. */
const CLOCK_TOLERANCE_MILLIS = 30_000;

/**
 * The body of the response, checked against the call's shape, which is less than `Result` says. Rejections throw. A signed command with an unknown outcome is
 * retried until the outcome is known or the signal aborts, anything else for patienceMillis, or for 5 s while the service has never
 * responded. A request whose signature is rejected for its age is signed once more. A response beyond the limits throws
 * CLIENT_ERR_TOO_LARGE and is not asked for again.
 */
export async function exchange<Result>(service: Service, call: Call, signal?: AbortSignal): Promise<Result> {
  return (await exchangeWhole<Result>(service, call, signal)).value;
}

export interface Exchanged<Result> {
  readonly value: Result;
  readonly headers: Headers;
  /** The receipt, where it was asked for and the response is signed. */
  readonly receipt?: Receipt | undefined;
}

/** The same, with the headers of the response. */
export async function exchangeWhole<Result>(
  service: Service,
  call: Call,
  signal?: AbortSignal,
): Promise<Exchanged<Result>> {
  const { clock, contact, patienceMillis, onRetry } = service;
  let request = await prepare(service, call);
  let isResigned = false;
  let isUnknown = false;
  const startedAt = clock.local.now();
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptOnce(service, request, signal);
    if ('value' in outcome) return outcome as Exchanged<Result>;
    const { error, waitMillis = backoffMillis(attempt) } = outcome;
    if (!error.retryable) {
      const isOfSignature = error.code === 'FORUM_ERR_SIGNATURE' && call.signer !== undefined;
      if (isResigned || !isOfSignature || !learnTime(clock, error, request.signedAt)) throw error;
      request = await prepare(service, call);
      isResigned = true;
      continue;
    }
    const isCommand = call.method !== 'GET' && (call.signer ?? call.sent) !== undefined;
    isUnknown ||= outcome.isUnknown && isCommand;
    const limitMillis = contact.isMade ? patienceMillis : Math.min(patienceMillis, FIRST_CONTACT_MILLIS);
    if (!isUnknown && clock.local.now() + waitMillis > startedAt + limitMillis) throw error;
    const pauseMillis = Math.min(waitMillis, RETRY_AFTER_MILLIS_MAX);
    onRetry({ error, waitMillis: pauseMillis });
    await clock.local.sleep(pauseMillis, signal);
  }
}

async function prepare({ baseUrl, clock, limits }: Service, call: Call) {
  const { method, path, body, signer, sent, beforeSend, wantsReceipt = false, accept } = call;
  const { as = 'json', linesMax = PAGE_LINES_MAX, shape = ANY_OBJECT, waitMillis = 0 } = call;
  const url = new URL(baseUrl + path).href;
  const text = sent?.body ?? (body === undefined ? '' : JSON.stringify(body));
  const signedAt = clock.now();
  const headers: Readonly<Record<string, string>> = sent?.headers ?? {
    ...(signer && signatureHeaders(signer, { method, targetUri: url, body: text }, signedAt)),
    ...(wantsReceipt && { 'Accept-Signature': acceptReceipt(newNonce()) }),
    ...(body && { 'Content-Type': 'application/json' }),
    ...(accept !== undefined && { Accept: accept }),
    ...(as === 'nothing' && { Accept: 'text/event-stream' }),
  };
  if (signer !== undefined) await beforeSend?.({ method, path, body: text, headers });
  const init: RequestInit = { method, headers, ...(text !== '' && { body: text }) };
  const receiptRequest = toReceiptRequest(method, url, headers);
  const wholeShape = as === 'list' ? listOf(shape) : as === 'json' ? shape : undefined;
  const wholeMillisMax = limits.responseMillisMax + waitMillis;
  return { url, init, as, linesMax, wholeShape, signedAt, receiptRequest, wholeMillisMax };
}

/** Undefined for a request that asks for no receipt. */
function toReceiptRequest(method: string, targetUri: string, headers: SignedRequest['headers']) {
  if (headers['Accept-Signature'] === undefined) return undefined;
  const field = (name: string) => headers[name] ?? '';
  const [contentDigest, signatureInput, signature] = [
    field('Content-Digest'),
    field('Signature-Input'),
    field('Signature'),
  ];
  return { method, targetUri, contentDigest, signatureInput, signature };
}

/** Undefined for an unsigned response: a service of an earlier release, or a proxy, may leave the signature out. */
function readReceipt(request: ReceiptRequest, { status, headers }: OpenResponse, body: string): Receipt | undefined {
  const field = (name: string) => headers.get(name) ?? '';
  const [event, signatureInput] = [headers.get('Event'), field('Signature-Input')];
  if (event === null || !signatureInput.includes(RECEIPT_TAG)) return undefined;
  const [contentDigest, logId, signature] = [field('Content-Digest'), field('Log-Id'), field('Signature')];
  return { request, response: { status, body, contentDigest, event, logId, signatureInput, signature } };
}

interface Failure {
  readonly error: ClientError;
  /** Whether the request may have been accepted although the service's response was not received. */
  readonly isUnknown: boolean;
  readonly waitMillis?: number;
}

async function attemptOnce(
  service: Service,
  { url, init, as, linesMax, wholeShape, receiptRequest, wholeMillisMax }: Awaited<ReturnType<typeof prepare>>,
  signal?: AbortSignal,
): Promise<Exchanged<unknown> | Failure> {
  signal?.throwIfAborted();
  const { baseUrl, clock, contact } = service;
  const sentAt = clock.local.now();
  const doubt = init.method === 'GET' ? '' : '; the request may have been accepted';
  let response: OpenResponse | undefined;
  try {
    response = await openResponse(service.fetch, url, init, { signal, wholeMillisMax });
    contact.isMade = true;
    const { headers } = response;
    contact.logId = headers.get('Log-Id') ?? contact.logId;
    const text = receiptRequest && response.ok ? await response.text(service.limits) : undefined;
    const value =
      text === undefined
        ? await readBody(response, { as, linesMax }, service.limits)
        : parseModestJson(text, service.limits);
    // The Date header has whole seconds; browsers show it only if the service exposes it.
    const earliest = Date.parse(headers.get('Date') ?? '');
    const serviceTime = { earliest, latest: earliest + 999, isFromHeader: true };
    if (!Number.isNaN(earliest)) clock.learn(serviceTime, { sentAt, receivedAt: clock.local.now() });
    if (!response.ok || value === undefined) return readFailure(baseUrl, response, value);
    const problem = wholeShape?.(value, '');
    if (problem === undefined) {
      return { value, headers, receipt: receiptRequest && readReceipt(receiptRequest, response, text ?? '') };
    }
    const error = new ClientError('CLIENT_ERR_ANSWER', `the response of ${url} can’t be used: ${problem}${doubt}`);
    return { error, isUnknown: false };
  } catch (cause) {
    signal?.throwIfAborted();
    const reason = reasonOf(cause);
    if (cause instanceof LimitError || reason === HEADERS_TOO_LARGE) {
      const { message } = cause as Error;
      const error = tooLarge(`the response of ${baseUrl} is not read further: ${message}${doubt}`, cause);
      return { error, isUnknown: true };
    }
    const hint = tlsHint(reason) ?? (contact.isMade ? '' : IS_IT_RUNNING);
    const problem = `no response from ${baseUrl}: ${reason}${hint}`;
    const error = new ClientError('CLIENT_ERR_UNREACHABLE', problem, { cause });
    return { error, isUnknown: !NEVER_SENT.test(reason) };
  } finally {
    response?.close();
  }
}

const IS_IT_RUNNING = '. Is the service running? Start it (npm start), or set its URL';

/** An error code of Node's fetch. */
const HEADERS_TOO_LARGE = 'UND_ERR_HEADERS_OVERFLOW';

/** undefined if it is not JSON, where that is expected. */
async function readBody(
  response: OpenResponse,
  { as, linesMax }: Required<Pick<Call, 'as' | 'linesMax'>>,
  limits: ReadLimits,
): Promise<unknown> {
  if (!response.ok || as === 'json') return await response.json(limits);
  if (as === 'list') return await response.list(limits);
  if (as === 'text') return await response.text(limits);
  return as === 'page' ? await readPage(response, linesMax, limits) : null;
}

async function readPage(response: OpenResponse, linesMax: number, limits: ReadLimits): Promise<Page> {
  const lines: string[] = [];
  let bytes = 0;
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for await (const line of response.lines(limits)) {
    if (!line.isEnded) break;
    lines.push(decoder.decode(line.bytes));
    bytes += line.bytes.length;
    if (lines.length === linesMax) return { lines, isEnd: response.headers.get('Stream-End') === 'true' };
    if (bytes >= limits.pageBytesMax) return { lines, isEnd: false };
  }
  return { lines, isEnd: true };
}

/** The JSON of a line or an event, undefined if it is none. Throws CLIENT_ERR_TOO_LARGE beyond the limits. */
export function parseJson(text: string, limits: ReadLimits): unknown {
  try {
    return parseModestJson(text, limits);
  } catch (error) {
    throw tooLarge(`a line of the service is not read: ${(error as Error).message}`, error);
  }
}

export function tooLarge(problem: string, cause: unknown): ClientError {
  return new ClientError('CLIENT_ERR_TOO_LARGE', problem, { cause });
}

/** The length of an error's detail. */
const DETAIL_CHARS_MAX = 10_000;
const GATEWAY_STATUSES: readonly number[] = [500, 502, 503, 504];

/** A gateway or another server may have responded: nothing about the body's form is assumed. */
function readFailure(baseUrl: string, { status, headers }: OpenResponse, body: unknown): Failure {
  const seconds = Number(headers.get('Retry-After') ?? Number.NaN);
  const retryAfterSeconds = seconds >= 0 ? seconds : undefined;
  const wait = retryAfterSeconds === undefined ? {} : { waitMillis: retryAfterSeconds * 1000 };
  const { error: name, detail, ...members } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const code = ERROR_CODES.find((known) => known === name);
  if (code !== undefined && typeof detail === 'string') {
    const options = { status, retryAfterSeconds, ...readData(members) };
    return { error: new ClientError(code, detail.slice(0, DETAIL_CHARS_MAX), options), isUnknown: false, ...wait };
  }
  if (GATEWAY_STATUSES.includes(status)) {
    const problem = `${baseUrl} returned ${status}, but the response is not from the service`;
    return { error: new ClientError('CLIENT_ERR_UNREACHABLE', problem, { status }), isUnknown: true, ...wait };
  }
  const problem = `${baseUrl} returned ${status} in an unknown format: ${otherUrl(baseUrl, status, headers)}`;
  return { error: new ClientError('CLIENT_ERR_ANSWER', problem, { status }), isUnknown: false };
}

/** Where the service may be instead. A proxy redirects plain HTTP, or says 400 to it on a port that speaks TLS. */
function otherUrl(baseUrl: string, status: number, headers: OpenResponse['headers']): string {
  const location = headers.get('Location');
  const target = location !== null && URL.canParse(location, baseUrl) ? new URL(location, baseUrl).origin : undefined;
  if (target !== undefined && target !== new URL(baseUrl).origin) return `it redirects to ${target}, so use that URL`;
  const isPlain = status === 400 && baseUrl.startsWith('http:');
  return `check the base URL${isPlain ? '; if it speaks TLS, use https:// instead of http://' : ''}`;
}

/** The header Retry-After says how long to wait, because a gateway may have written it. */
function readData(members: Readonly<Record<string, unknown>>): ErrorData {
  const { step, expected, serviceTime, head, history, failedRules } = members;
  return {
    step: SIGNATURE_STEPS.find((known) => known === step),
    ...(isExpected(expected) && { expected }),
    ...(typeof serviceTime === 'string' && !Number.isNaN(Date.parse(serviceTime)) && { serviceTime }),
    ...(Number.isSafeInteger(head) && { head: head as number }),
    ...(isHistory(history) && { history }),
    ...(Array.isArray(failedRules) && { failedRules: ADMISSION_RULES.filter((rule) => failedRules.includes(rule)) }),
  };
}

const LEAF = /^0x[0-9a-fA-F]{64}$/;

function isHistory(value: unknown): value is HistoryConflict {
  const { eventId, seen, leaf } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return Number.isSafeInteger(eventId) && LEAF.test(String(seen)) && (leaf === null || LEAF.test(String(leaf)));
}

function isExpected(value: unknown): value is ExpectedSignature {
  const { signatureBase, contentDigest } = (value ?? {}) as Record<keyof ExpectedSignature, unknown>;
  return typeof signatureBase === 'string' && typeof contentDigest === 'string';
}

/** How Node's fetch describes requests that were never sent; browsers do not say. */
const NEVER_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT|ERR_TLS|ERR_SSL|bad port/;

/** Whether the URL is at fault, not the service: it has the other scheme, or a certificate that is not trusted here. */
export function isTlsMismatch({ cause }: ClientError): boolean {
  return cause !== undefined && tlsHint(reasonOf(cause)) !== undefined;
}

function reasonOf(error: unknown): string {
  const { cause = error } = (error ?? {}) as { readonly cause?: unknown };
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return String(code ?? message ?? error);
}

/** Whether an error names a service time so far from ours that a new signature may be accepted. */
export function learnTime(clock: ServiceClock, { serviceTime = '' }: ClientError, signedAt: Millis): boolean {
  const at = Date.parse(serviceTime);
  // Compared with the signature's time: another request may have learned the difference meanwhile.
  if (Number.isNaN(at) || Math.abs(at - signedAt) < CLOCK_TOLERANCE_MILLIS) return false;
  const now = clock.local.now();
  clock.learn({ earliest: at, latest: at }, { sentAt: now, receivedAt: now });
  return true;
}
