// Describes an endpoint as an OpenAPI operation, with every error that the endpoint can return.
import { TICKER } from '../moves/propose.ts';
import { ALICE, CHAMBER_ID, SAMPLE_LOG_ID } from '../moves/samples.ts';
import {
  type Content,
  DID_SCHEMA,
  type Endpoint,
  LOG_ID_SCHEMA,
  type Parameter,
  POSITIVE,
  type ResponseDescription,
} from '../vocabulary/endpoint.ts';
import { type ErrorCode, statusOf } from '../vocabulary/errors.ts';
import { codeSamples } from './code-samples.ts';
import { sampleLine } from './events.ts';
import type { Schema } from './json-schema.ts';

export const SCHEMAS = '#/components/schemas/';

export type OperationObject = ReturnType<typeof operationOf>;

export function operationOf(endpoint: Endpoint, baseUrl: string) {
  const { operationId, tag, summary, description, signed, body } = endpoint;
  const parameters = parametersOf(endpoint);
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security: SECURITY[signed ?? 'never'],
    parameters,
    ...(body && { requestBody: { required: !body.isOptional, content: { 'application/json': mediaOf(body) } } }),
    responses: responsesOf(endpoint),
    'x-codeSamples': codeSamples(endpoint, baseUrl, parameters),
  };
}

const SIGNATURE = { contentDigest: [], signatureInput: [], signature: [] };
const SECURITY = { never: [], always: [SIGNATURE], optional: [{}, SIGNATURE] } as const;

const PATH_PARAMETERS: Readonly<Record<string, Omit<Parameter, 'name' | 'in'>>> = {
  did: { description: 'the agent', schema: DID_SCHEMA, example: ALICE },
  id: { description: 'the chamber', schema: POSITIVE, example: CHAMBER_ID },
  eventId: { description: 'the event', schema: POSITIVE, example: 3 },
  logId: { description: 'the logId, as in `GET /`', schema: LOG_ID_SCHEMA, example: SAMPLE_LOG_ID },
  tile: {
    description: '`<level>/<index>` or `entries/<index>`',
    schema: { type: 'string', pattern: '^(\\d+|entries)/(x\\d{3}/)*\\d{3}(\\.p/\\d+)?$' },
    example: '0/000.p/3',
  },
  ticker: { description: 'case-insensitive', schema: { type: 'string', pattern: TICKER.source }, example: 'RAIN' },
};

function parametersOf({ path, parameters = [] }: Endpoint): readonly (Parameter & { readonly required: boolean })[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const parameter = PATH_PARAMETERS[name];
    if (parameter === undefined) throw new Error(`the path parameter ${name} has no description`);
    return { name, in: 'path' as const, ...parameter, required: true };
  });
  return [...inPath, ...parameters.map((parameter) => ({ required: false, ...parameter }))];
}

export interface ResponseObject {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, MediaObject>>;
}

export interface MediaObject {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly $ref: string }>>;
  /** The bytes as sent, if `example` is only one of the events that they contain. */
  readonly 'x-text'?: string;
}

const REJECTED = { $ref: '#/components/responses/Rejected', description: 'Rejected before it reached the endpoint' };

function responsesOf(endpoint: Endpoint): Readonly<Record<string, ResponseObject>> {
  const successes = Object.entries(endpoint.responses).map(([status, response]) => [status, successOf(response)]);
  // Several codes can share a status.
  const errors = [...Map.groupBy(errorCodesOf(endpoint), statusOf)].map(([status, group]) => [
    status,
    errorOf(group, endpoint.errorHeaders),
  ]);
  return { ...Object.fromEntries([...successes, ...errors]), default: REJECTED };
}

function successOf({ description, headers, content }: ResponseDescription): ResponseObject {
  return {
    description,
    headers: headerRefs(headers),
    ...(content && { content: Object.fromEntries([content].flat().map(mediaEntry)) }),
  };
}

function mediaEntry(content: Content): readonly [type: string, media: MediaObject] {
  return [content.type ?? 'application/json', mediaOf(content)];
}

function mediaOf(content: Content): MediaObject {
  if ('schema' in content) return { schema: { $ref: SCHEMAS + content.name }, example: content.example };
  const { type, description, event } = content;
  const text = content.example(sampleLine());
  if (event === undefined) return { schema: { type: 'string', description }, example: text };
  const schema = { $ref: SCHEMAS + event };
  // Generated clients parse each server-sent event; OpenAPI 3.1 has no keyword for the items of a stream.
  if (type === 'text/event-stream') return { schema, example: JSON.parse(sampleLine()), 'x-text': text };
  return { schema: { type: 'string', description, contentMediaType: type, contentSchema: schema }, example: text };
}

const COMMON_ERRORS = [
  'FORUM_ERR_VALIDATION',
  'FORUM_ERR_RATE',
  'FORUM_ERR_INTERNAL',
  'FORUM_ERR_UNAVAILABLE',
] as const;

/** Returns the codes sorted by status. */
function errorCodesOf({ method, path, signed, body, errors = [] }: Endpoint): readonly ErrorCode[] {
  if (method === 'options') return ['FORUM_ERR_RATE'];
  const codes = new Set<ErrorCode>([...COMMON_ERRORS, ...errors]);
  if (path.includes(':')) codes.add('FORUM_ERR_NOT_FOUND');
  if (signed) codes.add('FORUM_ERR_SIGNATURE');
  if (signed && method !== 'get') codes.add('FORUM_ERR_RETIRED');
  if (signed || body) codes.add('FORUM_ERR_TOO_LARGE').add('FORUM_ERR_MEDIA_TYPE');
  return [...codes].sort((a, b) => statusOf(a) - statusOf(b));
}

const RETRYABLE = { FORUM_ERR_RATE: ['Retry-After'], FORUM_ERR_UNAVAILABLE: ['Retry-After'] } as const;

function errorOf(codes: readonly ErrorCode[], others: Endpoint['errorHeaders']): ResponseObject {
  const refs = codes.map((code) => ({ $ref: SCHEMAS + code }));
  const [schema = {}] = refs.length === 1 ? refs : [{ oneOf: refs }];
  const examples = Object.fromEntries(codes.map((code) => [code, exampleRef(code)]));
  const headersOf: Endpoint['errorHeaders'] = { ...RETRYABLE, ...others };
  return {
    description: codes.join(' or '),
    headers: headerRefs(codes.flatMap((code) => headersOf[code] ?? [])),
    content: { 'application/json': { schema, examples } },
  };
}

/** Any origin may read every response, including errors. */
export function headerRefs(others: readonly string[] = []): ResponseObject['headers'] {
  return Object.fromEntries(
    ['Access-Control-Allow-Origin', ...others].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}

export function exampleRef(code: ErrorCode) {
  return { $ref: `#/components/examples/${code}` };
}
