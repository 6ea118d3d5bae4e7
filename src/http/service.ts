// GET / and GET /health (specification, Endpoints, Service), and GET /ready.
import * as v from 'valibot';
import { type ClientNetwork, isForwarded } from '../connections/client-address.ts';
import { parseDid } from '../crypto/did-key.ts';
import type { SignatureVerifier } from '../crypto/verify.ts';
import type { Forum } from '../forum/forum.ts';
import * as sample from '../moves/samples.ts';
import { formatVerifierKey, NOTE_KEY_TYPES, toNoteKey } from '../tlog/note.ts';
import { unavailable } from '../vocabulary/errors.ts';
import { address, count, id } from '../vocabulary/schemas.ts';
import { LOG_ID } from '../vocabulary/values.ts';
import type { HttpOptions } from './context.ts';
import { targetUris } from './request.ts';
import { json } from './response.ts';
import { type Route, readRoute } from './route.ts';
import { workedSignature } from './worked-example.ts';

export const SERVICE_NAME = 'Chamber Coordination Service';

/** Links to descriptions of the service for programs, people and language models (RFC 8288, RFC 8631). */
const LINK =
  '<openapi.json>; rel="service-desc", <docs>; rel="service-doc", <llms.txt>; rel="describedby", <agent-guide>; rel="help"';

const chain = v.strictObject({
  chainId: v.nullable(id),
  registryAddress: address,
  factoryAddress: address,
  rpcUrl: v.exactOptional(v.pipe(v.string(), v.description('URL of the development chain that the service runs'))),
  relayer: v.strictObject({
    ok: v.exactOptional(v.boolean()),
    reason: v.exactOptional(v.pipe(v.string(), v.description('why the relayer cannot work'))),
    pending: v.pipe(count, v.description('outstanding transactions')),
    failed: v.pipe(count, v.description('deployments that failed')),
    leads: v.pipe(v.boolean(), v.description('whether this node relays; other nodes on the log stand by')),
  }),
});

const health = v.strictObject({
  ok: v.boolean(),
  env: v.string(),
  clock: v.exactOptional(
    v.pipe(
      v.strictObject({
        ok: v.literal(false),
        reason: v.string(),
        aheadSeconds: v.pipe(
          v.number(),
          v.description("how far the service's time is ahead; negative if it is behind"),
        ),
      }),
      v.description('while the clock is in doubt'),
    ),
  ),
  chain: v.exactOptional(v.pipe(v.nullable(chain), v.description('null without a chain'))),
  log: v.exactOptional(
    v.pipe(
      v.strictObject({
        reason: v.exactOptional(v.pipe(v.string(), v.description('why no moves are accepted until an operator acts'))),
        warning: v.exactOptional(v.pipe(v.string(), v.description('a condition that can lose moves'))),
      }),
      v.description('present while something is wrong with the log'),
    ),
  ),
});

const log = v.strictObject({
  logId: v.pipe(v.string(), v.regex(LOG_ID)),
  origin: v.pipe(v.string(), v.description('the name of the log and its key: the first line of its checkpoints')),
  prefix: v.pipe(v.string(), v.description('the path under which the log is served')),
  checkpointKey: v.pipe(v.string(), v.description('verifier key of its checkpoints (C2SP signed-note)')),
});

const FEATURES = ['receipts', 'seen'];

export const serviceRoutes: readonly Route[] = [
  readRoute({
    path: '/',
    operationId: 'getService',
    tag: 'Service',
    summary: 'Name, version and links to the documents',
    description: 'Clients that prefer HTML, such as browsers, get a page.',
    returns: 'The service.',
    name: 'Service',
    schema: v.strictObject({
      name: v.string(),
      version: v.string(),
      guide: v.pipe(v.string(), v.description('for agents: how to sign and take part')),
      docs: v.pipe(v.string(), v.description('the API reference, for people')),
      llms: v.pipe(v.string(), v.description('llms.txt: an overview for language models')),
      openapi: v.string(),
      log,
      features: v.pipe(v.array(v.string()), v.description('names of optional features that clients can use')),
    }),
    example: {
      ...serviceOf('0.1.0', 'https://chambers.example.org/'),
      log: {
        logId: sample.SAMPLE_LOG_ID,
        origin: `chambers.example.org/log/${sample.SAMPLE_LOG_ID}`,
        prefix: `/log/${sample.SAMPLE_LOG_ID}`,
        checkpointKey: sample.CHECKPOINT_KEY,
      },
      features: FEATURES,
    },
    handle: async (context, c) => {
      const [target = ''] = targetUris(c, context.publicUrls);
      const service = serviceOf(context.version, new URL('.', target).href);
      return json({ ...service, log: await logOf(context), features: FEATURES }, { Link: LINK });
    },
  }),
  readRoute({
    path: '/health',
    operationId: 'getHealth',
    tag: 'Service',
    summary: 'Health of the service and its relayer',
    description:
      '`ok` is false if the relayer cannot work (`chain.relayer.reason`), if the log is not the published one (`log.reason`), and while the clock is in doubt (`clock.reason`).',
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
        relayer: { pending: 0, failed: 0, leads: true },
      },
    },
    handle: ({ env, chainStatus, logStatus, forum }) => {
      const { ok, details } = chainStatus();
      const log = logStatus();
      const clock = clockStatus(forum);
      const isOk = ok && log?.reason === undefined && clock === undefined;
      return json({ ok: isOk, env, ...(clock && { clock }), ...details, ...(log && { log }) });
    },
  }),
  readRoute({
    path: '/ready',
    operationId: 'getReady',
    tag: 'Service',
    summary: 'Whether moves are accepted',
    description:
      '503 while no move can be accepted: the latest write to the log failed, signatures are not verified, the clock is in doubt, or the service is stopping. ' +
      'The log is written every few seconds even without moves. Damaged chambers and the relayer do not count: see `GET /health`.',
    returns: 'Moves are accepted.',
    name: 'Ready',
    schema: v.strictObject({ ready: v.literal(true) }),
    example: { ready: true },
    handle: async ({ forum, verify, describeClient }, c) => {
      const { writeFailure } = forum;
      if (writeFailure !== undefined) throw writeFailure;
      const problem = forum.clockProblem();
      if (problem !== undefined) throw unavailable(problem.reason);
      await requireVerified(verify);
      const { incoming } = c.env;
      const client = incoming && { [CLIENT_NETWORK]: formatClient(describeClient(incoming), isForwarded(incoming)) };
      return json({ ready: true }, client);
    },
  }),
];

function clockStatus(forum: Forum): v.InferOutput<typeof health>['clock'] {
  const problem = forum.clockProblem();
  return problem && { ok: false, reason: problem.reason, aheadSeconds: problem.aheadMillis / 1000 };
}

/** `root` is the URL of GET /. */
function serviceOf(version: string, root: string) {
  return {
    name: SERVICE_NAME,
    version,
    guide: `${root}agent-guide`,
    docs: `${root}docs`,
    llms: `${root}llms.txt`,
    openapi: `${root}openapi.json`,
  };
}

async function logOf({ forum, keys, origin }: HttpOptions): Promise<v.InferOutput<typeof log>> {
  const { logId } = forum.store.log;
  const name = await origin;
  const { publicKey } = keys.current('checkpoints', forum.now());
  const checkpointKey = formatVerifierKey(toNoteKey(name, NOTE_KEY_TYPES.ed25519, publicKey));
  return { logId, origin: name, prefix: `/log/${logId}`, checkpointKey };
}

/** A header of GET /ready that shows operators the network that the request counts against, and how it was determined. */
export const CLIENT_NETWORK = 'Client-Network';

/**
 * `direct`: the network of the connection; `client`: the network of the client that a trusted proxy named; `trusted`: the network of a
 * trusted proxy that named only trusted addresses, e.g. for a client on its machine; `proxy`: the network of a trusted proxy that named
 * no client.
 */
function formatClient({ network, isProxied, isNamed }: ClientNetwork, isForwarded: boolean): string {
  const unnamed = isForwarded ? 'trusted' : 'proxy';
  return `${network}, ${isNamed ? 'client' : isProxied ? unnamed : 'direct'}`;
}

/** Probes have their own queue in the verifier, so they neither wait for other callers nor delay them. */
const PROBE = { network: 'GET /ready', did: sample.ALICE };
const { signatureBase, signature } = workedSignature();

/** Throws FORUM_ERR_UNAVAILABLE unless a valid signature verifies. */
async function requireVerified(verify: SignatureVerifier): Promise<void> {
  const key = parseDid(sample.ALICE) ?? new Uint8Array();
  if (await verify(key, Buffer.from(signatureBase), Buffer.from(signature, 'base64'), PROBE)) return;
  throw unavailable('signatures are not verified');
}
