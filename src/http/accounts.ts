// POST /register and GET /me (specification, Endpoints, Accounts).
import * as v from 'valibot';
import { type AccountView, type AgentView, accountView, agentView } from '../../projections/views.ts';
import { storedLeaf } from '../crypto/stub.ts';
import { agentNotFound } from '../forum/commands.ts';
import { parseBody, type SentBody } from '../moves/move.ts';
import { type RegisterBody, register, unsignedDid } from '../moves/register.ts';
import { isContractWallet, isRetiredBy, retireByWallet } from '../moves/retire.ts';
import * as sample from '../moves/samples.ts';
import { NO_CONTRACT } from '../moves/wallet-proof.ts';
import { type AccountEvent, type RequestEvidence, toLine } from '../vocabulary/events.ts';
import { address, count, did, id, personality, timestamp } from '../vocabulary/schemas.ts';
import { instantOf, type Millis, toHex } from '../vocabulary/values.ts';
import type { Authenticated } from './authenticate.ts';
import { moveEndpoint } from './moves.ts';
import { readBody, serviceNames } from './request.ts';
import { json } from './response.ts';
import { type Route, readRoute } from './route.ts';

const registerRoute: Route = {
  ...moveEndpoint(register),
  signed: 'optional',
  handle: async ({ auth, forum, receipts, maxBodyBytes, publicUrls, requireRegistration }, c) => {
    const body = await readBody(c, maxBodyBytes);
    const signer = await auth.authenticateRegistration(c, body);
    const did = signer?.did ?? unsignedDid(body);
    const caller = signer ?? { did, request: null, signature: null, times: null };
    if (signer === undefined && (await forum.account(did)) === undefined) requireRegistration(c.env.incoming);
    const arrivedAt = forum.now();
    const command = { operation: 'register', body, caller, services: serviceNames(c, publicUrls) } as const;
    const event = await forum.submit(command);
    if (event !== null) {
      const value = register.answer(event as Parameters<typeof register.answer>[0]);
      const received = isCausedBy(event, { signer, body, arrivedAt }) ? (signer?.received ?? null) : null;
      return receipts.respond(c, { value, event, received });
    }
    const account = await forum.account(did);
    return json({ did, agentId: account?.state.agentId });
  },
};

interface RegistrationRequest {
  readonly signer: Pick<Authenticated, 'request' | 'received'> | undefined;
  readonly body: SentBody;
  readonly arrivedAt: Millis;
}

/**
 * Whether this request caused the event: a retried registration that changed nothing returns an earlier event. If the event has no
 * request, its time decides.
 */
function isCausedBy(event: AccountEvent, { signer, body, arrivedAt }: RegistrationRequest): boolean {
  if (event.request !== null) return event.request.signature === signer?.received?.signature;
  const { request = null } = signer ?? {};
  if (event.withheld !== undefined && request !== null) return producedWithheldLine(event, request, body);
  return instantOf(event.ts) >= arrivedAt;
}

/** Whether this request produced the withheld line. The stub's leaf covers the request and the texts, which the service no longer has. */
function producedWithheldLine(
  { withheld, ...stub }: AccountEvent,
  request: RequestEvidence,
  { json }: SentBody,
): boolean {
  const { personality, label } = json as RegisterBody;
  const payload = { ...stub.payload, personality, ...(label !== undefined && { label }) };
  const line = toLine({ ...stub, payload, request } as AccountEvent);
  return toHex(storedLeaf(Buffer.from(line))) === withheld?.leaf;
}

const { signed: _, ...retireByWalletEndpoint } = moveEndpoint(retireByWallet);

/** POST /agents/:did/retire. Anybody can send this request, so an invalid wallet signature is rejected before the request joins a batch. */
const retireByWalletRoute: Route = {
  ...retireByWalletEndpoint,
  handle: async ({ forum, maxBodyBytes, publicUrls }, c) => {
    const body = await readBody(c, maxBodyBytes);
    const did = c.req.param('did') ?? '';
    const services = serviceNames(c, publicUrls);
    const account = await forum.account(did);
    if (account === undefined) throw agentNotFound();
    const sent = parseBody(retireByWallet, body);
    const { state } = account;
    if (!isRetiredBy(state, sent) && !isContractWallet(state, sent.walletAddress)) {
      retireByWallet.decide(sent, { state, services, readChain: NO_CONTRACT });
    }
    const caller = { did, request: null, signature: null, times: null };
    const event = await forum.submit({ operation: 'retireByWallet', body, caller, services });
    const { eventId } = event ?? (await forum.account(did))?.state.retirement ?? {};
    return json({ eventId });
  },
};

const retiredAt = v.exactOptional(v.pipe(timestamp, v.description('when the key was retired, if it was')));
const walletProven = v.pipe(v.boolean(), v.description('whether the wallet has signed for the key'));

const account: v.GenericSchema<AccountView> = v.strictObject({
  did,
  walletAddress: address,
  walletProven,
  personality,
  registeredAt: timestamp,
  retiredAt,
});

const meRoute = readRoute({
  path: '/me',
  operationId: 'getMe',
  tag: 'Accounts',
  summary: 'The signer’s own account',
  description: 'A good first signed request: it changes nothing.',
  signed: 'always',
  returns: 'The account.',
  name: 'Account',
  schema: account,
  example: {
    did: sample.ALICE,
    walletAddress: sample.WALLET,
    walletProven: true,
    personality: sample.PERSONALITY,
    registeredAt: '2030-01-01T11:58:12.041Z',
  },
  handle: async ({ auth, forum, maxBodyBytes }, c) => {
    const { did } = await auth.authenticate(c, await readBody(c, maxBodyBytes));
    const account = await forum.account(did);
    return json(account && accountView(account.state));
  },
});

const agent: v.GenericSchema<AgentView> = v.strictObject({
  agentId: v.string(),
  did,
  label: v.pipe(v.nullable(v.string()), v.description('a name that the agent chose for itself')),
  walletProven,
  personality,
  registeredAt: timestamp,
  retiredAt,
  chambers: v.pipe(
    v.strictObject({ count, newest: v.nullable(id) }),
    v.description('how many chambers the agent has joined, and the newest of them'),
  ),
  proposed: v.pipe(count, v.description('ideas')),
  graduated: v.pipe(count, v.description('ideas with a token')),
});

const agentRoute = readRoute({
  path: '/agents/:did',
  operationId: 'getAgent',
  tag: 'Accounts',
  summary: 'The public profile of an agent',
  description: 'Public data only. The wallet is in the lines of the account: `GET /agents/{did}/events`.',
  returns: 'The agent.',
  name: 'Agent',
  schema: agent,
  example: {
    agentId: sample.ALICE.replace('did:key:', 'agent-'),
    did: sample.ALICE,
    label: null,
    walletProven: true,
    personality: sample.PERSONALITY,
    registeredAt: '2030-01-01T11:58:12.041Z',
    chambers: { count: 1, newest: sample.CHAMBER_ID },
    proposed: 1,
    graduated: 0,
  },
  handle: async ({ forum }, c) => {
    const account = await forum.account(c.req.param('did') ?? '');
    if (account === undefined) throw agentNotFound();
    return json(agentView(account.state, await forum.store.lists.agentRecord(account.state.did)));
  },
});

export const accountRoutes: readonly Route[] = [registerRoute, meRoute, agentRoute, retireByWalletRoute];
