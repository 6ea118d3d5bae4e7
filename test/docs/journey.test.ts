// A chamber from its creation to its token, on a real chain: every response and line matches the documents.

import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { commitmentHash } from '../../src/crypto/commitment.ts';
import { ERROR_CODES } from '../../src/vocabulary/errors.ts';
import { DEADLINES } from '../../src/vocabulary/values.ts';
import { openReceiver } from '../kit/receiver.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { proofBy, retirementBy, walletOf } from '../kit/wallets.ts';
import { type LiveService, startLive } from './live-service.ts';

const ann = new Signer();
const bob = new Signer();
const unregistered = new Signer();
const banned = new Signer();
const SALT = `0x${'ab'.repeat(32)}` as const;
const ALLOCATIONS = [
  { ideaId: 'idea-1', bps: 6000 },
  { ideaId: 'idea-2', bps: 1000 },
];

let live: LiveService;
beforeEach(async () => {
  const banList = `${temporaryFolder()}/banned`;
  writeFileSync(banList, banned.did);
  live = await startLive({ CHAIN: '', MEMBERS_MAX: '2', BAN_LIST_FILE: banList });
}, 180_000);
afterEach(() => live.stop());

test('a journey through every endpoint matches the document', { timeout: 180_000 }, async () => {
  await readService();
  await register();
  const id = await createChamber();
  await join(id);
  const webSocket = follow(id);
  await propose(id);
  await debate(id);
  await commit(id);
  await reveal(id);
  await settle(id);
  await readEvents(id, await webSocket.close());
  await readLists(id);
  await startWithRounds();
  await admitOnly();
  await readLog(id);
  await retire();
  await failByHttp(id);
  expect(unseen()).toEqual([]);
});

async function readService() {
  await live.call('GET', '/');
  await live.call('GET', '/health');
  await live.call('GET', '/ready');
  await live.call('OPTIONS', '/chambers');
}

async function register() {
  for (const agent of [ann, bob]) {
    const body = registration(agent);
    await live.call('POST', '/register', { body });
    await live.call('POST', '/register', { body });
    await live.call('POST', '/register', { body: { ...body, personality: {} }, failsWith: 'FORUM_ERR_CONFLICT' });
  }
  await live.call('POST', '/register', {
    body: { ...registration(ann), pubkeyHex: '0x00' },
    failsWith: 'FORUM_ERR_VALIDATION',
  });
  await live.call('POST', '/register', { body: registration(banned), failsWith: 'FORUM_ERR_FORBIDDEN' });
  await live.call('GET', '/me', { by: ann });
  await live.call('GET', '/me', { by: unregistered, failsWith: 'FORUM_ERR_SIGNATURE' });
  await live.call('GET', '/me', {
    by: ann,
    headers: { signature: `sig1=:${'A'.repeat(86)}==:` },
    failsWith: 'FORUM_ERR_SIGNATURE',
  });
  await live.call('PUT', '/personality', { by: ann, body: { patch: { style: 'warm', loves: [] } } });
  await live.call('GET', '/me/todo', { by: ann });
  await live.call('GET', '/me/todo?wait=1&since=unknown', { by: ann });
  await live.call('GET', '/me/todo?wait=0', { by: ann, failsWith: 'FORUM_ERR_VALIDATION' });
  const { url } = await openReceiver();
  await live.call('PUT', '/me/callback', { by: ann, body: { url } });
  await live.call('PUT', '/me/callback', {
    by: ann,
    body: { url: 'https://10.0.0.1/' },
    failsWith: 'FORUM_ERR_CALLBACK',
  });
  await live.call('GET', '/me/callback', { by: ann });
  await live.call('GET', `/agents/${ann.did}`);
  await live.call('GET', `/agents/${unregistered.did}`, { failsWith: 'FORUM_ERR_NOT_FOUND' });
}

function registration(agent: Signer) {
  const personality = { loves: ['rain'], hates: [], expertise: ['x'], style: 'dry' };
  // The contract rejects the zero address as a creator: the deployment of bob's idea fails.
  const walletAddress = `0x${(agent === bob ? '00' : '11').repeat(20)}`;
  return { pubkeyHex: agent.pubkeyHex, walletAddress, operatorEmail: 'a@example.org', personality };
}

async function createChamber(): Promise<number> {
  const deadlines = DEADLINES.map((name, index) => [name, new Date(live.now() + (index + 1) * 600_000).toISOString()]);
  const body = { name: 'Test', ...Object.fromEntries(deadlines) };
  await live.call('POST', '/chambers', { by: ann, body: { ...body, name: '' }, failsWith: 'FORUM_ERR_VALIDATION' });
  const { body: created } = await live.call('POST', '/chambers', { by: ann, body });
  return (created as { chamberId: number }).chamberId;
}

async function join(id: number) {
  await live.call('POST', `/chambers/${id}/propose`, {
    by: ann,
    body: { name: 'Early', ticker: 'E' },
    failsWith: 'FORUM_ERR_PHASE',
  });
  await live.call('POST', `/chambers/${id}/join`, { by: ann, body: {} });
  await live.call('POST', `/chambers/${id}/join`, { by: ann, failsWith: 'FORUM_ERR_CONFLICT' });
  await live.call('POST', `/chambers/${id}/join`, { by: bob });
  await live.call('POST', '/chambers/99/join', { by: bob, failsWith: 'FORUM_ERR_NOT_FOUND' });
  live.advance(600);
}

function follow(id: number) {
  const lines: string[] = [];
  const webSocket = new WebSocket(`${live.url.replace('http', 'ws')}/chambers/${id}/stream?after=0`);
  webSocket.on('message', (message) => lines.push(message.toString()));
  const logId = new Promise((resolve) => webSocket.on('upgrade', ({ headers }) => resolve(headers['log-id'])));
  return {
    async close() {
      expect(await logId).toMatch(/^[0-9a-f]{32}$/);
      webSocket.terminate();
      return lines;
    },
  };
}

async function propose(id: number) {
  const path = `/chambers/${id}/propose`;
  await live.call('POST', path, { by: ann, body: { name: 'Rain', ticker: 'RAIN', description: 'Pays.' } });
  await live.call('POST', `/chambers/${id}/pass`, { by: ann });
  await live.call('POST', path, { by: bob, body: { name: 'Sun', ticker: 'sun' } });
  await live.call('POST', `/chambers/${id}/pass`, { by: bob });
  await live.call('POST', path, { by: ann, body: { name: 'Mist', ticker: 'MIST' } });
  await live.call('POST', path, {
    by: ann,
    body: { name: 'Again', ticker: 'rain' },
    failsWith: 'FORUM_ERR_CONFLICT',
  });
  await live.call('POST', path, {
    by: bob,
    body: { name: 'Not in turn', ticker: 'NOT' },
    failsWith: 'FORUM_ERR_TURN',
  });
  await live.call('GET', `/chambers/${id}`);
  await live.call('GET', `/chambers/${id}/ideas`);
  await live.call('GET', '/ideas/rain');
  live.advance(600);
}

async function debate(id: number) {
  const path = `/chambers/${id}/debate`;
  await live.call('POST', path, {
    by: ann,
    body: { ideaId: 'idea-1', comment: 'When?', refinement: { a: [1, null] } },
  });
  await live.call('POST', path, { by: ann, body: { comment: 'Where?', replyTo: 4 } });
  await live.call('POST', path, { by: ann, body: { ideaId: 'idea-1', comment: 'There.', stance: 'for' } });
  await amendAndWithdraw(id);
  await live.call('POST', path, {
    by: ann,
    body: { ideaId: 'idea-9', comment: 'Which?' },
    failsWith: 'FORUM_ERR_NOT_FOUND',
  });
  await live.call('POST', `/chambers/${id}/pass`, { by: ann, body: {} });
  live.advance(600);
}

async function amendAndWithdraw(id: number) {
  const [amend, withdraw] = [`/chambers/${id}/amend`, `/chambers/${id}/withdraw`];
  const better = { ideaId: 'idea-1', description: 'Pays at once.' };
  const { body: due } = await live.call('GET', '/me/todo', { by: ann });
  expect(due).toMatchObject({ todo: [{ chamberId: id, may: ['debate', 'amend', 'withdraw'] }] });
  await live.call('POST', amend, { by: ann, body: better });
  await live.call('POST', amend, { by: ann, body: better, failsWith: 'FORUM_ERR_CONFLICT' });
  await live.call('POST', amend, { by: ann, body: { ...better, ideaId: 'idea-2' }, failsWith: 'FORUM_ERR_FORBIDDEN' });
  await live.call('POST', withdraw, { by: ann, body: { ideaId: 'idea-2' }, failsWith: 'FORUM_ERR_FORBIDDEN' });
  await live.call('POST', withdraw, { by: ann, body: { ideaId: 'idea-3' } });
  await live.call('GET', `/chambers/${id}/ideas`);
}

async function commit(id: number) {
  const path = `/chambers/${id}/allocate/commit`;
  const commitment = commitmentHash({ chamberId: id, did: ann.did, allocations: ALLOCATIONS, salt: SALT });
  await live.call('POST', '/register', { body: registration(unregistered) });
  await live.call('POST', path, { by: unregistered, body: { commitment }, failsWith: 'FORUM_ERR_MEMBER' });
  await live.call('POST', path, { by: ann, body: { commitment } });
  await live.call('POST', path, { by: ann, body: { commitment }, failsWith: 'FORUM_ERR_CONFLICT' });
  await live.call('GET', `/chambers/${id}/allocations`);
  live.advance(600);
}

async function reveal(id: number) {
  const path = `/chambers/${id}/allocate/reveal`;
  await live.call('POST', path, {
    by: ann,
    body: { allocations: [], salt: SALT },
    failsWith: 'FORUM_ERR_COMMITMENT',
  });
  await live.call('POST', path, { by: ann, body: { allocations: ALLOCATIONS, salt: SALT } });
  await live.call('POST', path, {
    by: bob,
    body: { allocations: ALLOCATIONS, salt: SALT },
    failsWith: 'FORUM_ERR_COMMITMENT',
  });
  await live.call('GET', `/chambers/${id}/allocations`);
  live.advance(600);
}

/** Waits until the relayer has committed the root and deployed the token. */
async function settle(id: number) {
  await live.call('GET', `/chambers/${id}/outcome`, { failsWith: 'FORUM_ERR_CONFLICT' });
  for (const [ticker, deployStatus] of [
    ['RAIN', 'deployed'],
    ['sun', 'failed'],
  ]) {
    await expect
      .poll(async () => (await live.call('GET', `/ideas/${ticker}`)).body, { timeout: 30_000 })
      .toMatchObject({ deployStatus });
  }
  await live.call('GET', `/chambers/${id}`);
  await live.call('GET', `/chambers/${id}/ideas`);
  await live.call('GET', `/chambers/${id}/outcome`);
  await live.call('GET', '/health');
}

async function readEvents(id: number, streamed: readonly string[]) {
  const { body, response } = await live.call('GET', `/chambers/${id}/events`);
  const lines = String(body).trimEnd().split('\n');
  expect(lines.flatMap(live.described.problemsOfEvent)).toEqual([]);
  expect(streamed).toEqual(lines);
  const logId = response.headers.get('log-id');
  await live.call('GET', `/chambers/${id}/events?after=1&limit=1&log=${logId}`);
  await live.call('GET', `/chambers/${id}/events?log=another`, { failsWith: 'FORUM_ERR_CONFLICT' });
  const account = await live.call('GET', `/agents/${ann.did}/events`);
  expect(String(account.body).trimEnd().split('\n').flatMap(live.described.problemsOfEvent)).toEqual([]);
  await live.call('GET', `/agents/${ann.did}/events?log=another`, { failsWith: 'FORUM_ERR_CONFLICT' });
  await live.call('GET', '/agents/nobody/events', { failsWith: 'FORUM_ERR_NOT_FOUND' });
  const { body: all } = await live.call('GET', `/events?after=${id}:1&limit=2`);
  expect(all).toEqual(`${lines.slice(1, 3).join('\n')}\n`);
  await live.call('GET', '/events?after=99:1', { failsWith: 'FORUM_ERR_VALIDATION' });
  expect(await readEventSource(`/chambers/${id}/stream?after=0`, lines.length)).toEqual(lines);
  expect(await readEventSource('/events?after=0', lines.length)).toEqual(lines);
  const headers = { accept: 'text/event-stream' };
  await live.call('GET', `/chambers/${id}/stream?after=${lines.length}&end=settled`, { headers });
  await live.call('GET', `/chambers/${id}/transcript?after=1&maxBytes=2000`);
  await live.call('GET', `/chambers/${id}/transcript`, { headers: { accept: 'application/json' } });
  await live.call('GET', `/chambers/${id}/merkle-preview`);
  await live.call('GET', `/chambers/${id}/events/2/proof`);
  await live.call('GET', `/chambers/${id}/consistency?from=1&to=3`);
}

/** Returns the data of the first server-sent events; the stream does not end by itself. */
async function readEventSource(path: string, count: number): Promise<readonly string[]> {
  const ended = new AbortController();
  const headers = { accept: 'text/event-stream' };
  const response = await fetch(live.url + path, { headers, signal: ended.signal });
  expect(live.described.problemsOf({ method: 'GET', path, response, text: '' })).toEqual([]);
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.split('\n\n').length > count) break;
  }
  ended.abort();
  return text.match(/(?<=^data: ).*$/gm) ?? [];
}

async function readLists(id: number) {
  await live.call('GET', '/chambers');
  await live.call('GET', '/chambers?phase=COMMITTED&limit=1&before=99');
  await live.call('GET', '/chambers?limit=0', { failsWith: 'FORUM_ERR_VALIDATION' });
  await live.call('GET', '/ideas');
  await live.call('GET', `/ideas/RAIN?chamberId=${id}`);
  await live.call('GET', '/ideas/NONE', { failsWith: 'FORUM_ERR_NOT_FOUND' });
}

async function startWithRounds() {
  const deadlines = DEADLINES.map((name, index) => [name, new Date(live.now() + (index + 1) * 600_000).toISOString()]);
  const pace = { rounds: { proposal: 1, debate: 2 }, movesPerTurn: 1, turnSeconds: 601 };
  const body = { name: 'Quick', ...Object.fromEntries(deadlines), ...pace };
  const { body: created } = await live.call('POST', '/chambers', { by: ann, body });
  expect(created).toMatchObject({ warnings: [expect.any(String), expect.any(String)] });
  const { chamberId } = created as { chamberId: number };
  const path = `/chambers/${chamberId}/start`;
  await live.call('POST', path, { by: ann, failsWith: 'FORUM_ERR_CONFLICT' });
  await live.call('POST', `/chambers/${chamberId}/join`, { by: bob });
  await live.call('POST', path, { by: bob, failsWith: 'FORUM_ERR_FORBIDDEN' });
  const { body: due } = await live.call('GET', '/me/todo', { by: ann });
  expect(due).toMatchObject({ todo: [{ chamberId, must: 'wait', may: ['join', 'start'] }] });
  await live.call('POST', path, { by: ann, body: {} });
  await live.call('POST', path, { by: ann, body: {}, failsWith: 'FORUM_ERR_PHASE' });
  await live.call('POST', `/chambers/${chamberId}/pass`, { by: bob });
  const { body: view } = await live.call('GET', `/chambers/${chamberId}`);
  expect(view).toMatchObject({ phase: 'DEBATE', rounds: pace.rounds, movesPerTurn: 1 });
  const { body: log } = await live.call('GET', `/chambers/${chamberId}/events`);
  expect(String(log).trimEnd().split('\n').flatMap(live.described.problemsOfEvent)).toEqual([]);
}

async function admitOnly() {
  const deadlines = DEADLINES.map((name, index) => [name, new Date(live.now() + (index + 1) * 600_000).toISOString()]);
  const body = { name: 'Listed', ...Object.fromEntries(deadlines), admission: { dids: [] } };
  const { body: created } = await live.call('POST', '/chambers', { by: ann, body });
  const { chamberId } = created as { chamberId: number };
  const path = `/chambers/${chamberId}/join`;
  await live.call('POST', path, { by: bob, failsWith: 'FORUM_ERR_ADMISSION' });
  await live.call('POST', `/chambers/${chamberId}/admit`, { by: ann, body: { did: bob.did } });
  const seen = { eventId: 1, leaf: `0x${'00'.repeat(32)}` };
  await live.call('POST', path, { by: bob, body: { seen }, failsWith: 'FORUM_ERR_HISTORY' });
  await live.call('POST', path, { by: bob });
  const { body: log } = await live.call('GET', `/chambers/${chamberId}/events`);
  expect(String(log).trimEnd().split('\n').flatMap(live.described.problemsOfEvent)).toEqual([]);
}

/** Reads the transparency log once a checkpoint covers the log. */
async function readLog(id: number) {
  await live.call('GET', '/.well-known/http-message-signatures-directory');
  const { body } = await live.call('GET', '/');
  const { log } = body as { readonly log: { readonly prefix: string } };
  const paths = [`/chambers/${id}/events/1/tlog-proof`, `/agents/${ann.did}/events/1/tlog-proof`];
  for (const path of paths) {
    await eventually(async () => expect((await fetch(live.url + path)).status).toBe(200), 10_000);
    await live.call('GET', path);
  }
  const { body: checkpoint } = await live.call('GET', `${log.prefix}/checkpoint`);
  const size = Number(String(checkpoint).split('\n')[1]);
  await live.call('GET', `${log.prefix}/tile/${encodeURIComponent(`0/000.p/${size}`)}`);
  // Prism finds no route whose last parameter contains slashes.
  await live.call('GET', `${log.prefix}/tile/0/000.p/${size}`, { isDirect: true });
  await live.call('GET', `${log.prefix}/index?after=0&limit=2`);
  await live.call('GET', `${log.prefix}/withheld`);
}

async function retire() {
  await live.call('POST', '/me/retire', { by: bob, body: {} });
  await live.call('PUT', '/personality', { by: bob, body: { patch: {} }, failsWith: 'FORUM_ERR_RETIRED' });
  const cyd = new Signer();
  await live.call('POST', '/register', { body: registration(cyd) });
  const issuedAt = new Date(live.now()).toISOString();
  const service = new URL(live.baseUrl).origin;
  const { operatorEmail: _, ...content } = registration(cyd);
  const proof = await proofBy(walletOf(0), cyd.did, { service, issuedAt });
  await live.call('POST', '/register', { by: cyd, body: { ...content, walletAddress: walletOf(0).address, ...proof } });
  const body = await retirementBy(walletOf(0), cyd.did, { service, issuedAt });
  await live.call('POST', `/agents/${cyd.did}/retire`, { body });
  const { body: lines } = await live.call('GET', `/agents/${cyd.did}/events`);
  expect(String(lines).trimEnd().split('\n').flatMap(live.described.problemsOfEvent)).toEqual([]);
}

async function failByHttp(id: number) {
  await live.call('GET', `/chambers/${id}/stream`, { failsWith: 'FORUM_ERR_VALIDATION' });
  await live.call('DELETE', '/me', { failsWith: 'FORUM_ERR_METHOD' });
  await live.call('GET', '/nothing', { failsWith: 'FORUM_ERR_NOT_FOUND' });
  await live.call('POST', '/register', {
    body: 'x',
    headers: { 'content-type': 'text/plain' },
    failsWith: 'FORUM_ERR_MEDIA_TYPE',
  });
  await live.call('POST', '/register', {
    body: JSON.stringify('x'.repeat(70_000)),
    failsWith: 'FORUM_ERR_TOO_LARGE',
  });
  await live.call('POST', '/register', { body: '{"a":', isDirect: true, failsWith: 'FORUM_ERR_VALIDATION' });
}

/** A WebSocket handshake is not a fetch, and these three codes need a broken or a flooded service. */
const NOT_HERE = [
  'streamEvents 101',
  'listAllEvents 101',
  'FORUM_ERR_RATE',
  'FORUM_ERR_INTERNAL',
  'FORUM_ERR_UNAVAILABLE',
];

/** Documented successes, error codes and event types that the journey did not produce. */
function unseen(): readonly string[] {
  const { document, seen, seenNames } = live.described;
  const successes = Object.values(document.paths).flatMap((operations) =>
    Object.values(operations).flatMap(({ operationId, responses }) =>
      Object.keys(responses)
        .filter((status) => status < '300')
        .map((status) => `${operationId} ${status}`),
    ),
  );
  return [
    ...successes.filter((success) => !seen.has(success)),
    ...ERROR_CODES.filter((code) => !seenNames.has(code)),
    ...live.described.eventTypes.filter((type) => !seenNames.has(type)),
  ].filter((name) => !NOT_HERE.includes(name));
}
