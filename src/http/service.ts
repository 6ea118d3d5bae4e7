// GET / and GET /health (specification, Endpoints, Service).
import * as v from 'valibot';
import * as sample from '../moves/samples.ts';
import { address, count, id } from '../vocabulary/schemas.ts';
import { type Route, readRoute } from './context.ts';
import { json } from './response.ts';

const SERVICE_NAME = 'Chamber Coordination Service';

/** The descriptions of the service for programs, people and language models (RFC 8288, RFC 8631). */
const LINK =
  '<openapi.json>; rel="service-desc", <docs>; rel="service-doc", <llms.txt>; rel="describedby", <agent-guide>; rel="help"';

const chain = v.strictObject({
  chainId: v.nullable(id),
  registryAddress: address,
  factoryAddress: address,
  rpcUrl: v.exactOptional(v.pipe(v.string(), v.description('of a development chain that the service runs itself'))),
  relayer: v.strictObject({
    ok: v.exactOptional(v.boolean()),
    reason: v.exactOptional(v.pipe(v.string(), v.description('why the relayer cannot work'))),
    pending: v.pipe(count, v.description('transactions to be done')),
    failed: v.pipe(count, v.description('deployments that failed')),
  }),
});

const health = v.strictObject({
  ok: v.boolean(),
  env: v.string(),
  chain: v.exactOptional(v.pipe(v.nullable(chain), v.description('null without a chain'))),
});

export const serviceRoutes: readonly Route[] = [
  readRoute({
    path: '/',
    operationId: 'getService',
    tag: 'Service',
    summary: 'Name and version',
    returns: 'The service.',
    name: 'Service',
    schema: v.strictObject({ name: v.string(), version: v.string() }),
    example: { name: SERVICE_NAME, version: '0.1.0' },
    handle: ({ version }) => json({ name: SERVICE_NAME, version }, { Link: LINK }),
  }),
  readRoute({
    path: '/health',
    operationId: 'getHealth',
    tag: 'Service',
    summary: 'Health of the service and its relayer',
    description: '`ok` is false when the relayer cannot do its work; `chain.relayer.reason` says why.',
    returns: 'The state of the service.',
    name: 'Health',
    schema: health,
    example: {
      ok: true,
      env: 'production',
      chain: {
        chainId: 31337,
        registryAddress: sample.TOKEN,
        factoryAddress: sample.WALLET,
        relayer: { pending: 0, failed: 0 },
      },
    },
    handle: ({ env, chainStatus }) => {
      const { ok, details } = chainStatus();
      return json({ ok, env, ...details });
    },
  }),
];
