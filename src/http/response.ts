// Answers as bytes: JSON with the headers that every answer carries.
import { ForumError } from '../vocabulary/errors.ts';

/** Every answer may be read by every origin (specification, What the service does, 8). */
export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'Log-Id, Retry-After, Allow, Date, X-Request-Id',
} as const;

const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8', ...CORS_HEADERS } as const;

export function json(body: unknown, headers?: Readonly<Record<string, string>>): Response {
  return jsonText(JSON.stringify(body), headers);
}

/** What is JSON already. */
export function jsonText(text: string | Uint8Array, headers?: Readonly<Record<string, string>>): Response {
  return new Response(text, {
    status: 200,
    headers: headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers },
  });
}

/** The refusal with its status and `{ error, detail }`; whatever is no ForumError is a defect and tells nothing inner. */
export function refusal(error: unknown): Response {
  const known = error instanceof ForumError ? error : new ForumError('FORUM_ERR_INTERNAL', 'internal error');
  return new Response(JSON.stringify(known.toBody()), {
    status: known.status,
    headers: { ...JSON_HEADERS, ...known.headers },
  });
}
