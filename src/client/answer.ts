// Reads an answer: a value, or the refusal in it. What comes may be anybody's, so nothing of its form is taken for granted.
import { ERROR_CODES, type ErrorCode, type ExpectedSignature } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

const GATEWAY_STATUSES: readonly number[] = [500, 502, 503, 504];

export function readAnswer(
  baseUrl: string,
  form: 'json' | 'text',
  { ok, status }: { readonly ok: boolean; readonly status: number },
  text: string,
): unknown {
  if (ok && form === 'text') return text;
  const body = parse(text);
  if (ok && body !== undefined) return body;
  return readRefusal(body, status) ?? strangersAnswer(baseUrl, status);
}

/** The service's time as the detail of a refused signature tells it. */
export function parseServiceTime(detail: string): Millis | undefined {
  const [, timestamp] = /service time (\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)/.exec(detail) ?? [];
  return timestamp === undefined ? undefined : Date.parse(timestamp);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readRefusal(body: unknown, status: number): ClientError | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { error, detail, expected } = body as Record<'error' | 'detail' | 'expected', unknown>;
  if (!isErrorCode(error) || typeof detail !== 'string') return undefined;
  return new ClientError(error, detail, { status, ...(isExpected(expected) ? { expected } : {}) });
}

function isErrorCode(code: unknown): code is ErrorCode {
  return (ERROR_CODES as readonly unknown[]).includes(code);
}

function isExpected(value: unknown): value is ExpectedSignature {
  if (typeof value !== 'object' || value === null) return false;
  const { signatureBase, contentDigest } = value as Record<keyof ExpectedSignature, unknown>;
  return typeof signatureBase === 'string' && typeof contentDigest === 'string';
}

function strangersAnswer(baseUrl: string, status: number): ClientError {
  if (GATEWAY_STATUSES.includes(status)) {
    return new ClientError('CLIENT_ERR_UNREACHABLE', `${baseUrl} answers ${status}, but not by the service`, {
      status,
    });
  }
  const detail = `${baseUrl} answers ${status} in a form that is not the service's: is it the right base URL?`;
  return new ClientError('CLIENT_ERR_ANSWER', detail, { status });
}
