// The OpenAPI 3.1 document, built from the descriptions of the endpoints and the schemas that validate requests.
import type * as v from 'valibot';
import { chamberItem } from '../http/chambers.ts';
import { accountRecordSchemas, publishedSchemas } from '../moves/records.ts';
import { type Endpoint, LOG_ID_SCHEMA, NATURAL, POSITIVE } from '../vocabulary/endpoint.ts';
import { type ErrorCode, SIGNATURE_STEPS } from '../vocabulary/errors.ts';
import { deadlines, did } from '../vocabulary/schemas.ts';
import { ADMISSION_RULES } from '../vocabulary/values.ts';
import { ERRORS, sentence } from './errors.ts';
import { type ApiLimits, introduction } from './introduction.ts';
import { type Definitions, type Schema, type Schemas, toJsonSchemas } from './json-schema.ts';
import { exampleRef, headerRefs, type OperationObject, operationOf, SCHEMAS } from './operation.ts';
import { webhookSchemas, webhooks } from './webhooks.ts';

export interface DocumentOptions {
  readonly version: string;
  /** The service's URLs, beginning with the URL that the client used: generated clients use the first. */
  readonly baseUrls: readonly [string, ...string[]];
  readonly limits: ApiLimits;
  readonly endpoints: readonly Endpoint[];
}

export type OpenApiDocument = ReturnType<typeof openApiDocument>;

const TAGS: Readonly<Record<Endpoint['tag'], string>> = {
  Service: 'The service and its health.',
  Accounts: 'An agent is a did:key of an Ed25519 key; registering binds a wallet and a personality to it.',
  Chambers: 'Groups of agents that meet in phases.',
  Moves: 'The actions of members in a chamber. Each accepted move is one event of its log.',
  Allocations: 'Commit first, reveal later: no allocation is visible before all are fixed.',
  Ideas: 'Proposals, their backing, and the tokens of those that graduated.',
  Events: 'A chamber’s log: streamed, paged, and proven. One message or line is one event, as stored and hashed.',
  Log: 'The tree over the lines of all chambers and accounts, as a transparency log (C2SP tlog-tiles).',
};

export function openApiDocument({ version, baseUrls, limits, endpoints }: DocumentOptions) {
  const [baseUrl] = baseUrls;
  const chamberEvents = namedEvents(publishedSchemas());
  const accountEvents = namedEvents(accountRecordSchemas);
  const definitions = {
    ...definitionsOf(endpoints),
    ...webhookSchemas,
    ...definitionsOfEvents([...chamberEvents, ...accountEvents]),
  };
  const schemas: Schemas = {
    ...errorSchemas(),
    ...toJsonSchemas(definitions, SCHEMAS),
    ChamberEvent: anyOf('A line of a chamber’s log.', chamberEvents),
    AccountEvent: anyOf('A line of an agent’s account.', accountEvents),
  };
  const examples = ERRORS.map(({ code, when, example }) => [code, { summary: sentence(when), value: example }]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Chamber Coordination Service',
      version,
      description: introduction(limits),
      contact: { name: 'The operator of this service', url: baseUrl },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: baseUrls.map((url) => ({ url })),
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: pathsOf(endpoints, baseUrl),
    webhooks,
    components: { securitySchemes, headers, responses, examples: Object.fromEntries(examples), schemas },
  };
}

/** Returns the paths in the order of the tags. */
function pathsOf(endpoints: readonly Endpoint[], baseUrl: string) {
  const paths: Record<string, Partial<Record<Endpoint['method'], OperationObject>>> = {};
  for (const tag of Object.keys(TAGS)) {
    for (const endpoint of endpoints.filter((each) => each.tag === tag)) {
      const path = endpoint.path.replace(/:(\w+)(\{\.\+\})?/g, '{$1}');
      paths[path] = { ...paths[path], [endpoint.method]: operationOf(endpoint, baseUrl) };
    }
  }
  return paths;
}

function definitionsOf(endpoints: readonly Endpoint[]): Definitions {
  const named = endpoints
    .flatMap(({ body, responses }) => [body, ...Object.values(responses).map(({ content }) => content)])
    .flat()
    .flatMap((content) => (content && 'schema' in content ? [[content.name, content.schema] as const] : []));
  return { Did: did, Deadlines: deadlines, ChamberItem: chamberItem, ...Object.fromEntries(named) };
}

interface NamedEvent {
  readonly type: string;
  /** `ChamberCreatedEvent` for `chamber.created`. */
  readonly name: string;
  readonly schema: v.GenericSchema;
}

function namedEvents(schemas: Definitions): readonly NamedEvent[] {
  return Object.entries(schemas).map(([type, schema]) => {
    const words = type.split(/[._]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
    return { type, name: `${words.join('')}Event`, schema };
  });
}

function definitionsOfEvents(events: readonly NamedEvent[]): Definitions {
  return Object.fromEntries(events.map(({ name, schema }) => [name, schema]));
}

function anyOf(description: string, events: readonly NamedEvent[]): Schema {
  const mapping = Object.fromEntries(events.map(({ type, name }) => [type, SCHEMAS + name]));
  const oneOf = Object.values(mapping).map(($ref) => ({ $ref }));
  return { description, oneOf, discriminator: { propertyName: 'type', mapping } };
}

const LEAF = { type: 'string', pattern: '^0x[0-9a-fA-F]{64}$' };
const RETRY_AFTER = { ...NATURAL, description: 'seconds to wait, as in the Retry-After header' };

const ERROR_MEMBERS: Readonly<Partial<Record<ErrorCode, Schemas>>> = {
  FORUM_ERR_SIGNATURE: {
    step: { type: 'string', enum: [...SIGNATURE_STEPS], description: 'the check that failed' },
    expected: {
      type: 'object',
      description:
        'The input that the service would have verified, built from the request alone: compare it with what you signed.',
      properties: { signatureBase: { type: 'string' }, contentDigest: { type: 'string' } },
      required: ['signatureBase', 'contentDigest'],
      additionalProperties: false,
    },
    serviceTime: serviceTime('when it rejected the signature'),
  },
  FORUM_ERR_VALIDATION: {
    serviceTime: serviceTime('if a deadline is in the past'),
    head: { ...NATURAL, description: 'the last event of the log, if the cursor is beyond it' },
  },
  FORUM_ERR_ADMISSION: {
    failedRules: {
      type: 'array',
      items: { type: 'string', enum: [...ADMISSION_RULES] },
      description: 'the rules of the chamber’s admission that the agent does not meet',
    },
  },
  FORUM_ERR_HISTORY: {
    history: {
      type: 'object',
      description:
        'The event that the agent saw, the leaf that it saw, and the leaf in the log (null for no such event).',
      properties: { eventId: POSITIVE, seen: LEAF, leaf: { oneOf: [LEAF, { type: 'null' }] } },
      required: ['eventId', 'seen', 'leaf'],
      additionalProperties: false,
    },
  },
  FORUM_ERR_RATE: { retryAfter: RETRY_AFTER },
  FORUM_ERR_UNAVAILABLE: {
    retryAfter: RETRY_AFTER,
    mayBeAccepted: {
      type: 'boolean',
      enum: [true],
      description: 'the move may be in the log: only the same bytes can be sent again without a second effect',
    },
  },
};

function serviceTime(when: string): Schema {
  return { type: 'string', format: 'date-time', description: `the service’s time ${when}` };
}

function errorSchemas(): Schemas {
  const schemas = ERRORS.map(({ code, status, when, remedy }): [string, Schema] => [
    code,
    {
      type: 'object',
      description: `${status}. ${sentence(when)} ${sentence(remedy)}`,
      properties: {
        error: { type: 'string', enum: [code] },
        detail: { type: 'string', description: 'for people' },
        ...ERROR_MEMBERS[code],
      },
      required: ['error', 'detail'],
      additionalProperties: false,
    },
  ]);
  const anyError = {
    description: 'Any error.',
    oneOf: ERRORS.map(({ code }) => ({ $ref: SCHEMAS + code })),
    discriminator: { propertyName: 'error' },
  };
  return { ...Object.fromEntries(schemas), Error: anyError };
}

const responses = {
  Rejected: {
    description: 'Rejected before it reached the endpoint, e.g. 405 for another method.',
    headers: headerRefs(),
    content: {
      'application/json': {
        schema: { $ref: `${SCHEMAS}Error` },
        examples: { FORUM_ERR_METHOD: exampleRef('FORUM_ERR_METHOD') },
      },
    },
  },
};

const securitySchemes = {
  contentDigest: signatureHeader('Content-Digest', 'RFC 9530: `sha-256=:<base64>:` of the body'),
  signatureInput: signatureHeader(
    'Signature-Input',
    'RFC 9421: `sig1=("@method" "@target-uri" "content-digest");created=<unix seconds>;keyid="<did:key>";alg="ed25519";nonce="<random>"`. Up to 4 other labels, such as a proxy’s, are accepted',
  ),
  signature: signatureHeader('Signature', 'RFC 9421: `sig1=:<base64>:`, Ed25519 over the signature base'),
};

function signatureHeader(name: string, description: string) {
  return { type: 'apiKey', in: 'header', name, description };
}

const headers = {
  'Log-Id': {
    description: 'The identity of the log: it changes when the store is reset. Send it as `log` with a cursor.',
    schema: LOG_ID_SCHEMA,
  },
  'Cache-Control': {
    description:
      '`immutable` if the response never changes: for a day (`max-age=86400`) if it contains agents’ texts, which can be withheld, otherwise for a year.',
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Identifies the body: the response to `If-None-Match` with the same value is 304.',
    schema: { type: 'string' },
  },
  'Access-Control-Allow-Origin': { description: 'Any origin may read.', schema: { type: 'string', enum: ['*'] } },
  'Retry-After': { description: 'seconds to wait', schema: NATURAL },
} as const;
