// The types of endpoint descriptions. Descriptions are next to their routes; the OpenAPI document and the reference page are generated
// from them.
import type * as v from 'valibot';
import type { ErrorCode } from './errors.ts';
import type { Bounds } from './parameters.ts';
import { LOG_ID } from './values.ts';

export interface Endpoint {
  readonly method: 'get' | 'post' | 'put' | 'options';
  /** The router's pattern, e.g. `/chambers/:id`; a final parameter `:name{.+}` may contain slashes. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'Service' | 'Accounts' | 'Chambers' | 'Moves' | 'Allocations' | 'Ideas' | 'Events' | 'Log';
  readonly summary: string;
  readonly description: string;
  /** Absent if the endpoint takes no signature. */
  readonly signed?: 'always' | 'optional';
  /** Query parameters and headers. Path parameters are described once for all endpoints. */
  readonly parameters?: readonly Parameter[];
  readonly body?: JsonContent & { readonly isOptional: boolean | undefined };
  /** Successful responses by status. */
  readonly responses: Readonly<Record<number, ResponseDescription>>;
  /** Errors in addition to those common to all endpoints, to signed endpoints and to endpoints with a path parameter. */
  readonly errors?: readonly ErrorCode[];
  /** Headers of these errors, in addition to the headers of every error. */
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
  /** Absent if the response has no body; an array if the client's Accept header selects the content. */
  readonly content?: Content | readonly Content[];
}

export type Content = JsonContent | TextContent;

interface JsonContent {
  /** Defaults to application/json. */
  readonly type?: 'application/http-message-signatures-directory+json';
  /** The name of the schema component. */
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
  /** Builds the example from a line of a log. */
  readonly example: (line: string) => string;
}

/** Cache-Control for immutable responses (RFC 8246), which any cache may keep for a year. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Cache-Control for responses with agents' texts. They change only if a text is withheld, so caches may keep them for a day at most. */
export const IMMUTABLE_TEXTS = 'public, max-age=86400, immutable';

/** int64, because typed languages assume 32 bits for an integer without a format. */
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

/** The bounds and the default of a list's `limit`. */
export const LIST_LIMIT = { min: 1, max: 200, fallback: 50 } as const;
export const EVENTS_LIMIT = { min: 1, max: 10_000, fallback: 1_000 } as const;

export function limitParameter(bounds: Bounds & { readonly fallback: number }): Parameter {
  return query('limit', 'maximum number of items', { ...within(bounds), default: bounds.fallback });
}
