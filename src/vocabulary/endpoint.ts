// How an HTTP endpoint is described. Descriptions are next to their routes; the OpenAPI document and the reference page
// are made from them.
import type * as v from 'valibot';
import type { ErrorCode } from './errors.ts';
import type { Bounds } from './parameters.ts';
import { LOG_ID } from './values.ts';

export interface Endpoint {
  readonly method: 'get' | 'post' | 'put' | 'options';
  /** The router's pattern, e.g. `/chambers/:id`; a last parameter `:name{.+}` may hold slashes. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'Service' | 'Accounts' | 'Chambers' | 'Moves' | 'Allocations' | 'Ideas' | 'Events' | 'Log';
  readonly summary: string;
  readonly description: string;
  /** Absent for an endpoint without signatures. */
  readonly signed?: 'always' | 'optional';
  /** Query parameters and headers; path parameters are described once for all endpoints. */
  readonly parameters?: readonly Parameter[];
  readonly body?: JsonContent & { readonly isOptional: boolean | undefined };
  /** The responses by status, errors excluded. */
  readonly responses: Readonly<Record<number, ResponseDescription>>;
  /** Errors in addition to those of every endpoint, every signed one and every one with a path parameter. */
  readonly errors?: readonly ErrorCode[];
  /** Headers of these errors, in addition to those that an error always has. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, readonly 'Retry-After'[]>>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  /** JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example?: unknown;
  readonly required?: boolean;
}

export interface ResponseDescription {
  readonly description: string;
  /** Headers in addition to Access-Control-Allow-Origin, which every response has. */
  readonly headers?: readonly ('Log-Id' | 'Cache-Control' | 'ETag')[] | undefined;
  /** Absent for a response without a body; several when the client's Accept header chooses. */
  readonly content?: Content | readonly Content[];
}

export type Content = JsonContent | TextContent;

interface JsonContent {
  /** application/json where absent. */
  readonly type?: 'application/http-message-signatures-directory+json';
  /** Names the schema's component. */
  readonly name: string;
  readonly schema: v.GenericSchema;
  readonly example: unknown;
}

interface TextContent {
  readonly type:
    | 'text/event-stream'
    | 'application/x-ndjson'
    | 'text/markdown'
    | 'text/plain'
    | 'application/octet-stream';
  readonly description: string;
  /** The schema of each line or message. */
  readonly event?: 'ChamberEvent' | 'AccountEvent';
  /** Built from a line of a log. */
  readonly example: (line: string) => string;
}

/** Cache-Control of what never changes (RFC 8246): any cache may keep it for a year. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Cache-Control of responses with texts of agents, which change only if a text is withheld: no cache keeps it for longer than a day. */
export const IMMUTABLE_TEXTS = 'public, max-age=86400, immutable';

/** Ids and counts go beyond the 32 bits that typed languages take for an integer without a format. */
export const NATURAL = { type: 'integer', format: 'int64', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
export const POSITIVE = { ...NATURAL, minimum: 1 } as const;

export const LOG_ID_SCHEMA = { type: 'string', pattern: LOG_ID.source } as const;
export const DID_SCHEMA = { $ref: '#/components/schemas/Did' } as const;

export function within({ min, max }: Bounds): Parameter['schema'] {
  return { ...NATURAL, minimum: min, maximum: max };
}

export function query(name: string, description: string, schema: Parameter['schema']): Parameter {
  return { name, in: 'query', description, schema };
}

/** The bounds of a list's `limit`, and the value that counts when it is absent. */
export const LIST_LIMIT = { min: 1, max: 200, fallback: 50 } as const;
export const EVENTS_LIMIT = { min: 1, max: 10_000, fallback: 1_000 } as const;

export function limitParameter(bounds: Bounds & { readonly fallback: number }): Parameter {
  return query('limit', 'maximum number of items', { ...within(bounds), default: bounds.fallback });
}
