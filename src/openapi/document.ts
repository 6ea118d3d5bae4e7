// The OpenAPI 3.1 document, made from the endpoints' descriptions and the schemas that validate.
import { accountMoves, moves } from '../moves/registry.ts';
import { answerSchemas } from './answers.ts';
import { accountEndpoints } from './endpoints/accounts.ts';
import { chamberEndpoints } from './endpoints/chambers.ts';
import { type Endpoint, TAGS } from './endpoints/endpoint.ts';
import { eventEndpoints } from './endpoints/events.ts';
import { ideaEndpoints } from './endpoints/ideas.ts';
import { moveEndpoints, responseName } from './endpoints/moves.ts';
import { errorComponents } from './error-components.ts';
import { introduction } from './introduction.ts';
import { type Definitions, toJsonSchemas } from './json-schema.ts';
import type { ApiLimits } from './limits.ts';
import { bodyName, type OperationObject, operationOf, SCHEMA_PREFIX } from './operation.ts';

export interface DocumentOptions {
  readonly version: string;
  /** Where clients reach the service; empty: where they got the document. */
  readonly publicUrls: readonly string[];
  readonly limits: ApiLimits;
}

export type OpenApiDocument = ReturnType<typeof openApiDocument>;

export function openApiDocument({ version, publicUrls, limits }: DocumentOptions) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Chamber Coordination Service',
      version,
      description: introduction(limits),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: publicUrls.length === 0 ? [{ url: '/' }] : publicUrls.map((url) => ({ url })),
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: pathsOf(endpoints(limits)),
    components: {
      securitySchemes,
      headers,
      ...errorComponents,
      schemas: { ...errorComponents.schemas, ...toJsonSchemas(definitions(), SCHEMA_PREFIX) },
    },
  };
}

function endpoints(limits: ApiLimits): readonly Endpoint[] {
  return [
    ...accountEndpoints,
    ...chamberEndpoints(limits.list),
    ...moveEndpoints,
    ...ideaEndpoints(limits.list),
    ...eventEndpoints(limits.events),
  ];
}

type Paths = Record<string, Partial<Record<Endpoint['method'], OperationObject>>>;

function pathsOf(described: readonly Endpoint[]): Readonly<Paths> {
  const paths: Paths = {};
  for (const endpoint of described) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method]: operationOf(endpoint) };
  }
  return paths;
}

/** The bodies as they are validated, and the answers. */
function definitions(): Definitions {
  const slices = Object.values({ ...accountMoves, ...moves });
  const bodies = slices.map(({ operation, body }) => [bodyName(operation), body]);
  const responses = slices.map(({ operation, response }) => [responseName(operation), response]);
  return { ...Object.fromEntries(bodies), ...answerSchemas, ...Object.fromEntries(responses) };
}

const securitySchemes = {
  contentDigest: {
    type: 'apiKey',
    in: 'header',
    name: 'Content-Digest',
    description: 'RFC 9530: `sha-256=:<base64>:` of the body',
  },
  signatureInput: {
    type: 'apiKey',
    in: 'header',
    name: 'Signature-Input',
    description:
      'RFC 9421: `sig1=("@method" "@target-uri" "content-digest");created=<unix seconds>;keyid="<did:key>";alg="ed25519";nonce="<random>"`',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: 'Signature',
    description: 'RFC 9421: `sig1=:<base64>:`, Ed25519 over the signature base',
  },
} as const;

const headers = {
  'Log-Id': {
    description: 'Which log this is: it changes when the store is reset. Send it as `log` with a cursor.',
    schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
  },
  'Access-Control-Allow-Origin': { description: 'Any origin may read.', schema: { type: 'string', const: '*' } },
  'Retry-After': { description: 'seconds to wait', schema: { type: 'integer', minimum: 0 } },
} as const;
