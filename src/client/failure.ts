// Classifies failed attempts by their response or error.
import { LimitError } from '../reading/limits.ts';
import type { OpenResponse } from '../reading/response.ts';
import { tlsHint } from '../reading/tls-hint.ts';
import { retryAfterMillis } from '../reading/waiting.ts';
import {
  ERROR_CODES,
  type ErrorData,
  type ExpectedSignature,
  type HistoryConflict,
  SIGNATURE_STEPS,
} from '../vocabulary/errors.ts';
import { ADMISSION_RULES, instantOf, type Millis } from '../vocabulary/values.ts';
import type { Service } from './call.ts';
import { ClientError, tooLarge } from './error.ts';

export interface Failure {
  readonly error: ClientError;
  /** Whether the service may have accepted the request. */
  readonly isUnknown: boolean;
  readonly requestedMillis?: Millis | undefined;
  /** Something other than the service responded. */
  readonly isForeign?: true;
}

const DETAIL_CHARS_MAX = 10_000;
const GATEWAY_STATUSES: readonly number[] = [500, 502, 503, 504];

/** Reads an error response. Assumes nothing about the body's format, because a gateway may have written it. */
export function readFailure({ clock, ...service }: Service, response: OpenResponse, body: unknown): Failure {
  const { status, headers } = response;
  const requestedMillis = retryAfterMillis(headers, clock.local.now());
  const { error: name, detail, ...members } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const code = ERROR_CODES.find((known) => known === name);
  if (code === undefined || typeof detail !== 'string') return foreignFailure(service, response, requestedMillis);
  const retryAfterSeconds = requestedMillis === undefined ? undefined : requestedMillis / 1_000;
  const options = { status, retryAfterSeconds, ...errorDataOf(members) };
  const error = new ClientError(code, detail.slice(0, DETAIL_CHARS_MAX), options);
  return { error, isUnknown: error.mayBeAccepted === true, requestedMillis };
}

/**
 * Classifies a response that is not from the service. If the service has responded before, this is an outage; otherwise the URL is most
 * likely wrong. A gateway that returns 4xx has not forwarded the request.
 */
function foreignFailure(
  { baseUrl, contact }: Pick<Service, 'baseUrl' | 'contact'>,
  { status, headers }: OpenResponse,
  requestedMillis: Millis | undefined,
): Failure {
  const isUnknown = status < 400 || status >= 500;
  const isOutage = contact.isMade || GATEWAY_STATUSES.includes(status);
  const problem = isOutage
    ? `${baseUrl} returned ${status}, but the response is not from the service`
    : `${baseUrl} returned ${status} in an unknown format: ${urlHint(baseUrl, status, headers)}`;
  const error = new ClientError(isOutage ? 'CLIENT_ERR_UNREACHABLE' : 'CLIENT_ERR_ANSWER', problem, { status });
  return { error, isUnknown, requestedMillis, isForeign: true };
}

/** Classifies a request that got no complete response, or whose response exceeds the limits. */
export function connectionFailure({ baseUrl, contact }: Service, cause: unknown, doubt: string): Failure {
  const reason = reasonOf(cause);
  if (cause instanceof LimitError || reason === HEADERS_TOO_LARGE) {
    const { message } = cause as Error;
    const error = tooLarge(`the response of ${baseUrl} exceeds the limits: ${message}${doubt}`, cause);
    return { error, isUnknown: true };
  }
  const hint = tlsHint(reason) ?? (contact.isMade ? '' : START_HINT);
  const error = new ClientError('CLIENT_ERR_UNREACHABLE', `no response from ${baseUrl}: ${reason}${hint}`, { cause });
  return { error, isUnknown: !NEVER_SENT.test(reason) };
}

const START_HINT = '. Is the service running? Start it (npm start), or set its URL';

const HEADERS_TOO_LARGE = 'UND_ERR_HEADERS_OVERFLOW';

/** Suggests another URL. A proxy redirects plain HTTP, or returns 400 for it on a TLS port. */
function urlHint(baseUrl: string, status: number, headers: OpenResponse['headers']): string {
  const location = headers.get('Location');
  const target = location !== null && URL.canParse(location, baseUrl) ? new URL(location, baseUrl).origin : undefined;
  if (target !== undefined && target !== new URL(baseUrl).origin) return `it redirects to ${target}, so use that URL`;
  const isPlain = status === 400 && baseUrl.startsWith('http:');
  return `check the base URL${isPlain ? '; if it speaks TLS, use https:// instead of http://' : ''}`;
}

/** Returns the valid members. Omits `retryAfter`, because the Retry-After header may be a gateway's. */
function errorDataOf(members: Readonly<Record<string, unknown>>): ErrorData {
  const { step, expected, serviceTime, head, history, failedRules, mayBeAccepted } = members;
  return {
    step: SIGNATURE_STEPS.find((known) => known === step),
    ...(isExpected(expected) && { expected }),
    ...(typeof serviceTime === 'string' && !Number.isNaN(instantOf(serviceTime)) && { serviceTime }),
    ...(Number.isSafeInteger(head) && { head: head as number }),
    ...(isHistory(history) && { history }),
    ...(Array.isArray(failedRules) && { failedRules: ADMISSION_RULES.filter((rule) => failedRules.includes(rule)) }),
    ...(mayBeAccepted === true && { mayBeAccepted }),
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

/** Error codes of Node's fetch for requests that were never sent; browsers report none. */
const NEVER_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT|ERR_TLS|ERR_SSL/;

/** Returns whether the URL has the wrong scheme, or the certificate is not trusted here. */
export function isTlsMismatch({ cause }: ClientError): boolean {
  return cause !== undefined && tlsHint(reasonOf(cause)) !== undefined;
}

function reasonOf(error: unknown): string {
  const { cause = error } = (error ?? {}) as { readonly cause?: unknown };
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return String(code ?? message ?? error);
}
