// One endpoint as an OpenAPI operation, with every refusal that it may answer.
import { type ErrorCode, statusOf } from '../vocabulary/errors.ts';
import type { Answer, Endpoint, Parameter } from './endpoints/endpoint.ts';
import { errorRefs } from './error-components.ts';
import type { Schema } from './json-schema.ts';

export const SCHEMA_PREFIX = '#/components/schemas/';

export type OperationObject = ReturnType<typeof operationOf>;

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, MediaObject>>;
}

interface MediaObject {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly $ref: string }>>;
}

const SIGNATURE = { contentDigest: [], signatureInput: [], signature: [] };
const SECURITY = { no: [], yes: [SIGNATURE], optional: [{}, SIGNATURE] } as const;

/** The component name of a request's body. */
export function bodyName(operation: string): string {
  return `${operation.charAt(0).toUpperCase()}${operation.slice(1)}Body`;
}

export function operationOf(endpoint: Endpoint) {
  const { operationId, tag, summary, description, signed, parameters, body } = endpoint;
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: SECURITY[signed],
    ...(parameters === undefined ? {} : { parameters: parameters.map(parameterOf) }),
    ...(body === undefined ? {} : { requestBody: requestBodyOf(body) }),
    responses: responsesOf(endpoint),
  };
}

type Responses = Readonly<Record<string, ResponseObject>>;

const REFUSED = { $ref: '#/components/responses/Refused', description: 'Refused before the endpoint was reached' };

function responsesOf(endpoint: Endpoint): Responses {
  return { ...answersOf(endpoint), ...refusalsOf(endpoint), default: REFUSED };
}

function parameterOf({ isRequired, ...parameter }: Parameter) {
  return { ...parameter, required: isRequired ?? parameter.in === 'path' };
}

function requestBodyOf({ operation, example, isOptional = false }: NonNullable<Endpoint['body']>) {
  const schema = { $ref: SCHEMA_PREFIX + bodyName(operation) };
  return { required: !isOptional, content: { 'application/json': { schema, example } } };
}

function answersOf({ answers }: Endpoint): Responses {
  return Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, answerOf(answer)]));
}

function answerOf({ description, content, headers }: Answer): ResponseObject {
  const refs = headers?.map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  return {
    description,
    ...(refs === undefined ? {} : { headers: Object.fromEntries(refs) }),
    ...(content === undefined ? {} : { content: { [content.type]: mediaOf(content) } }),
  };
}

function mediaOf(content: NonNullable<Answer['content']>): MediaObject {
  const schema =
    'schema' in content ? { $ref: SCHEMA_PREFIX + content.schema } : { type: 'string', description: content.text };
  return { schema, example: content.example };
}

const ALWAYS: readonly ErrorCode[] = [
  'FORUM_ERR_VALIDATION',
  'FORUM_ERR_RATE',
  'FORUM_ERR_INTERNAL',
  'FORUM_ERR_UNAVAILABLE',
];

/** Every code that the endpoint may answer, in the order of the statuses. */
function errorsOf({ method, signed, body, errors }: Endpoint): readonly ErrorCode[] {
  if (method === 'options') return ['FORUM_ERR_RATE'];
  const codes = new Set<ErrorCode>([...ALWAYS, ...errors]);
  if (signed !== 'no') codes.add('FORUM_ERR_SIGNATURE');
  if (signed !== 'no' || body !== undefined) codes.add('FORUM_ERR_TOO_LARGE').add('FORUM_ERR_MEDIA_TYPE');
  return [...codes].sort((a, b) => statusOf(a) - statusOf(b));
}

function refusalsOf(endpoint: Endpoint): Responses {
  const codes = errorsOf(endpoint);
  const statuses = [...new Set(codes.map(statusOf))];
  return Object.fromEntries(
    statuses.map((status) => [status, refusalOf(codes.filter((code) => statusOf(code) === status))]),
  );
}

function refusalOf(codes: readonly ErrorCode[]): ResponseObject {
  const schemas = codes.map((code) => errorRefs(code).schema);
  const [only, ...others] = schemas;
  const schema = only !== undefined && others.length === 0 ? only : { oneOf: schemas };
  const examples = Object.fromEntries(codes.map((code) => [code, errorRefs(code).example]));
  const isRetryable = codes.some((code) => code === 'FORUM_ERR_RATE' || code === 'FORUM_ERR_UNAVAILABLE');
  return {
    description: codes.join(' or '),
    ...(isRetryable ? { headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } } } : {}),
    content: { 'application/json': { schema, examples } },
  };
}
