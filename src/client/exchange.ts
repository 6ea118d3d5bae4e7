// One request and its response, over as many attempts as needed: a request whose response was lost is sent again with the
// same bytes, and the service repeats its first response. So a move is made once, whatever the network does.
import { ERROR_CODES, type ExpectedSignature } from '../vocabulary/errors.ts';
import { ClientError } from './error.ts';
import { type Signer, signatureHeaders } from './signing.ts';
import { backoffMillis, linkedSignal, type ServiceClock } from './time.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A service as the client sees it. */
export interface Service {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly clock: ServiceClock;
  readonly fetch: Fetch;
  /** How long a call that certainly changed nothing is retried, in milliseconds. */
  readonly patienceMillis: number;
}

export interface CallOptions {
  /** Aborts the wait with the signal's reason. A move in flight may still be accepted: check the chamber's events. */
  readonly signal?: AbortSignal;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Appended to the base URL, with its query. */
  readonly path: string;
  readonly body?: object | undefined;
  readonly signer?: Signer;
  /** Format of the response: JSON by default. */
  readonly format?: 'json' | 'text';
}

type Outcome =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'rejected'; readonly error: ClientError }
  /** `isUnknown`: the request may have been accepted although no response was received. */
  | { readonly kind: 'lost'; readonly error: ClientError; readonly isUnknown: boolean; readonly waitMillis?: number };

type Prepared = ReturnType<typeof prepare>;

const ATTEMPT_MILLIS = 15_000;
/** The service accepts signatures that are minutes old; only beyond this difference is a new signature worth a try. */
const CLOCK_TOLERANCE_MILLIS = 30_000;

/**
 * The body of the response, not checked against `Result`. Rejections throw. A signed command with an unknown outcome is
 * retried until the outcome is known or the signal aborts, anything else until the service's patience is over. A
 * signature rejected for its age is made once more.
 */
export async function exchange<Result>(service: Service, call: Call, signal?: AbortSignal): Promise<Result> {
  let prepared = prepare(service, call);
  let isResigned = false;
  let isUnknown = false;
  const giveUpAt = service.clock.local() + service.patienceMillis;
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptOnce(service, prepared, call, signal);
    if (outcome.kind === 'ok') return outcome.value as Result;
    if (outcome.kind === 'rejected') {
      if (isResigned || !learnTime(service, call, outcome.error)) throw outcome.error;
      prepared = prepare(service, call);
      isResigned = true;
      continue;
    }
    isUnknown ||= outcome.isUnknown && call.method !== 'GET' && call.signer !== undefined;
    const waitMillis = outcome.waitMillis ?? backoffMillis(attempt);
    if (!isUnknown && service.clock.local() + waitMillis > giveUpAt) throw outcome.error;
    await service.clock.sleep(waitMillis, signal);
  }
}

function prepare({ baseUrl, clock }: Service, { method, path, body, signer }: Call) {
  const url = new URL(baseUrl + path).href;
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    ...(signer && signatureHeaders(signer, { method, targetUri: url, body: text }, clock.now())),
    ...(body && { 'Content-Type': 'application/json' }),
  };
  // A redirect would lead to a URL that was not signed.
  const init: RequestInit = { method, redirect: 'manual', headers, ...(body && { body: text }) };
  return { url, init };
}

async function attemptOnce(
  service: Service,
  { url, init }: Prepared,
  call: Call,
  signal?: AbortSignal,
): Promise<Outcome> {
  signal?.throwIfAborted();
  const sentAt = service.clock.local();
  const limit = linkedSignal(signal, ATTEMPT_MILLIS);
  try {
    const response = await service.fetch(url, { ...init, signal: limit.signal });
    const text = await response.text();
    // The Date header has whole seconds; browsers show it only if the service exposes it.
    const earliest = Date.parse(response.headers.get('Date') ?? '');
    const serviceTime = { earliest, latest: earliest + 999, isFromHeader: true };
    if (!Number.isNaN(earliest)) service.clock.learn(serviceTime, { sentAt, receivedAt: service.clock.local() });
    return readOutcome(service, call, response, text);
  } catch (cause) {
    signal?.throwIfAborted();
    const reason = reasonOf(cause);
    const detail = `no response from ${service.baseUrl}: ${reason}`;
    const error = new ClientError('CLIENT_ERR_UNREACHABLE', detail, { cause });
    return { kind: 'lost', error, isUnknown: !NEVER_SENT.test(reason) };
  } finally {
    limit.release();
  }
}

/** A gateway or another server may have responded: nothing about the body's form is assumed. */
function readOutcome({ baseUrl }: Service, call: Call, { ok, status, headers }: Response, text: string): Outcome {
  if (ok && call.format === 'text') return { kind: 'ok', value: text };
  const body = parseJson(text);
  if (ok && body !== undefined) return { kind: 'ok', value: body };
  const error = readError(body, status) ?? foreignResponse(baseUrl, status);
  if (!error.retryable) return { kind: 'rejected', error };
  // A gateway's error says nothing about the request's outcome; the service's own error does.
  const isUnknown = error.code === 'CLIENT_ERR_UNREACHABLE';
  const seconds = Number(headers.get('Retry-After') ?? Number.NaN);
  return { kind: 'lost', error, isUnknown, ...(seconds >= 0 ? { waitMillis: seconds * 1000 } : {}) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readError(body: unknown, status: number): ClientError | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { error, detail, expected } = body as Record<'error' | 'detail' | 'expected', unknown>;
  const code = ERROR_CODES.find((known) => known === error);
  if (code === undefined || typeof detail !== 'string') return undefined;
  return new ClientError(code, detail, { status, ...(isExpected(expected) ? { expected } : {}) });
}

function isExpected(value: unknown): value is ExpectedSignature {
  if (typeof value !== 'object' || value === null) return false;
  const { signatureBase, contentDigest } = value as Record<keyof ExpectedSignature, unknown>;
  return typeof signatureBase === 'string' && typeof contentDigest === 'string';
}

const GATEWAY_STATUSES: readonly number[] = [500, 502, 503, 504];

function foreignResponse(baseUrl: string, status: number): ClientError {
  if (GATEWAY_STATUSES.includes(status)) {
    const detail = `${baseUrl} returned ${status}, but the response is not from the service`;
    return new ClientError('CLIENT_ERR_UNREACHABLE', detail, { status });
  }
  const detail = `${baseUrl} returned ${status} in an unknown format: check the base URL`;
  return new ClientError('CLIENT_ERR_ANSWER', detail, { status });
}

/** How Node's fetch describes requests that were never sent; browsers do not say. */
const NEVER_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT|ERR_TLS|ERR_SSL|bad port/;

function reasonOf(error: unknown): string {
  const { cause = error } = (error ?? {}) as { readonly cause?: unknown };
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return String(code ?? message ?? error);
}

/** Whether a signature error names a service time so far from ours that a new signature may be accepted. */
function learnTime({ clock }: Service, { signer }: Call, { code, detail }: ClientError): boolean {
  if (code !== 'FORUM_ERR_SIGNATURE' || signer === undefined) return false;
  const [, timestamp = ''] = /service time (\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)/.exec(detail) ?? [];
  const serviceTime = Date.parse(timestamp);
  if (Number.isNaN(serviceTime) || Math.abs(serviceTime - clock.now()) < CLOCK_TOLERANCE_MILLIS) return false;
  const at = clock.local();
  clock.learn({ earliest: serviceTime, latest: serviceTime }, { sentAt: at, receivedAt: at });
  return true;
}
