// Receipts and `seen` in the client: requested, verified, stored and sent without code in the agent's program.
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Agent, ForumClient, type KeptReceipt } from '../../src/client/index.ts';
import { AdvancedClock, passing } from '../kit/clock.ts';
import { openService } from '../kit/open-service.ts';
import { isValidReceipt, readKeys } from '../kit/receipts.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { newChamber, PHASE_MILLIS, REGISTRATION, sharedLiveService } from './live-service.ts';

const live = sharedLiveService();

type Fetching = (url: string, init: RequestInit) => Promise<Response>;

function forumOf(fetching?: Fetching): ForumClient {
  return new ForumClient(live.baseUrl, { ...live.sharedTime, ...(fetching && { fetch: fetching }) });
}

/** The bodies of the chamber's moves, as stored in their lines. */
async function bodiesOf(forum: ForumClient, chamberId: number): Promise<readonly Record<string, unknown>[]> {
  const bodies: Record<string, unknown>[] = [];
  for await (const { event } of forum.history(chamberId)) bodies.push(JSON.parse(event.request?.body || '{}'));
  return bodies;
}

async function playedIn(agent: Agent): Promise<number> {
  await agent.register(REGISTRATION);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await agent.propose(chamberId, { name: 'Rain', ticker: 'RAIN' });
  return chamberId;
}

describe('an agent from a key file', () => {
  it('an agent from a key file stores a receipt for each command, which an independent library verifies', async () => {
    const keyFile = join(temporaryFolder(), 'agent.json');
    const chamberId = await playedIn(await Agent.fromKeyFile(forumOf(), keyFile));
    const [logId = ''] = readdirSync(`${keyFile}.receipts`);
    expect(readdirSync(`${keyFile}.receipts/${logId}`).sort()).toEqual([
      'account.ndjson',
      `chamber-${chamberId}.ndjson`,
    ]);
    const file = `${keyFile}.receipts/${logId}/chamber-${chamberId}.ndjson`;
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const receipts = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as KeptReceipt);
    expect(receipts.map(({ response }) => response.event.split(';leaf')[0])).toEqual(
      [1, 2, 3].map((eventId) => `${chamberId};id=${eventId}`),
    );
    const keys = await readKeys(live.baseUrl);
    for (const receipt of receipts) expect(await isValidReceipt(receipt, keys)).toBe(true);
  });

  it('an agent from a key file states the last event seen in each move, even after a restart', async () => {
    const keyFile = join(temporaryFolder(), 'agent.json');
    const chamberId = await playedIn(await Agent.fromKeyFile(forumOf(), keyFile));
    await (await Agent.fromKeyFile(forumOf(), keyFile)).pass(chamberId);
    const leaves: string[] = [];
    for await (const { leaf } of live.forum.history(chamberId)) leaves.push(leaf);
    const seen = (await bodiesOf(live.forum, chamberId)).map((body) => body['seen']);
    expect(seen).toEqual([undefined, ...[1, 2, 3].map((eventId) => ({ eventId, leaf: leaves[eventId - 1] }))]);
  });
});

describe('a receipt that can’t be stored', () => {
  it('a receipt that can’t be stored fails no command, and each new failure is a warning', async () => {
    const keyFile = join(temporaryFolder(), 'agent.json');
    const warnings: string[] = [];
    const agent = await Agent.fromKeyFile(
      new ForumClient(live.baseUrl, { ...live.sharedTime, onWarning: (warning) => void warnings.push(warning) }),
      keyFile,
    );
    const receipts = `${keyFile}.receipts`;
    writeFileSync(receipts, 'not a folder');
    const chamberId = await playedIn(agent);
    expect(warnings).toEqual([
      expect.stringMatching(/^accepted as event 1 of did:key:.*, but receipts cannot be stored: /),
    ]);
    expect(warnings[0]).toContain(receipts);
    const { asOfEventId } = await live.forum.merklePreview(chamberId);
    expect(asOfEventId).toBe(3);

    rmSync(receipts);
    await agent.pass(chamberId);
    rmSync(receipts, { recursive: true });
    writeFileSync(receipts, 'not a folder');
    await agent.pass(chamberId);
    expect(warnings).toHaveLength(2);
  });

  it('a receipt whose key can’t be read fails no command', async () => {
    const warnings: string[] = [];
    const fetching: Fetching = async (url, init) => {
      if (url.includes('/.well-known/')) throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
      return await fetch(url, init);
    };
    const forum = new ForumClient(live.baseUrl, {
      fetch: fetching,
      patienceMillis: 1,
      onWarning: (warning) => void warnings.push(warning),
    });
    await Agent.generate(forum).register(REGISTRATION);
    expect(warnings).toEqual([
      expect.stringMatching(/its receipt could not be verified and was not stored: no response from/),
    ]);
  });
});

describe('a receipt truncated by a crash', () => {
  it.each([
    ['in the middle of a line', (lines: string) => lines.slice(0, -40)],
    ['to which an earlier release has appended the next receipt', (lines: string) => lines.replace('\n', lines)],
  ])(
    'a receipt truncated by a crash %s fails no later move, and the last complete receipt determines `seen`',
    async (_, damage) => {
      const keyFile = join(temporaryFolder(), 'agent.json');
      const chamberId = await playedIn(await Agent.fromKeyFile(forumOf(), keyFile));
      const [logId = ''] = readdirSync(`${keyFile}.receipts`);
      const file = `${keyFile}.receipts/${logId}/chamber-${chamberId}.ndjson`;
      const lines = readFileSync(file, 'utf8').split('\n');
      writeFileSync(file, `${lines[0]}\n${damage(`${lines[1]}\n`)}`);
      const agent = await Agent.fromKeyFile(forumOf(), keyFile);
      await agent.pass(chamberId);
      const bodies = await bodiesOf(live.forum, chamberId);
      expect(bodies.at(-1)).toMatchObject({ seen: { eventId: 1 } });
      const after = readFileSync(file, 'utf8');
      const last = JSON.parse(after.trimEnd().split('\n').at(-1) ?? '') as KeptReceipt;
      expect(last.response.event).toContain(`${chamberId};id=4;`);
    },
  );
});

describe('an agent', () => {
  it('an agent states the last event that it has read as seen', async () => {
    const forum = forumOf();
    const agent = Agent.generate(forum);
    await agent.register(REGISTRATION);
    const { chamberId } = await Agent.fromSeed(forumOf(), new Uint8Array(32).fill(9))
      .register(REGISTRATION)
      .then(() => Agent.fromSeed(forumOf(), new Uint8Array(32).fill(9)).createChamber(newChamber(live.now())));
    for await (const _ of forum.history(chamberId));
    await agent.joinChamber(chamberId);
    const [, joined] = await bodiesOf(live.forum, chamberId);
    expect(joined).toMatchObject({ seen: { eventId: 1 } });
  });

  it('with receipts: false an agent neither requests receipts nor states what it has seen', async () => {
    const asked: (string | null)[] = [];
    const fetching: Fetching = (url, init) => {
      asked.push(new Headers(init.headers).get('accept-signature'));
      return live.sharedTime.fetch?.(url, init) ?? fetch(url, init);
    };
    const chamberId = await playedIn(Agent.generate(forumOf(fetching), { receipts: false }));
    expect(new Set(asked)).toEqual(new Set([null]));
    expect((await bodiesOf(live.forum, chamberId)).some((body) => 'seen' in body)).toBe(false);
  });

  it('an agent states nothing seen to a service that does not list the feature', async () => {
    const fetching: Fetching = async (url, init) => {
      const response = await fetch(url, init);
      if (url !== `${live.baseUrl}/`) return response;
      const { features: _, log: __, ...info } = (await response.json()) as Record<string, unknown>;
      return Response.json(info);
    };
    const chamberId = await playedIn(Agent.generate(forumOf(fetching)));
    expect((await bodiesOf(live.forum, chamberId)).some((body) => 'seen' in body)).toBe(false);
  });

  it.each<[string, Fetching, RegExp]>([
    ['of another event', replacing('event', (text) => text.replace(/id=\d+/, 'id=99')), /does not verify/],
    ['of another leaf', replacing('event', (text) => text.replace(/leaf=:..../, 'leaf=:AAAA')), /does not verify/],
    ['of another chamber', replacing('event', (text) => text.replace(/^\d+/, '99')), /it is for 99, not for/],
    ['of another log', replacing('log-id', () => 'ab'.repeat(16)), /does not verify/],
    ['without an event', replacing('event', () => 'nothing'), /names no event/],
    ['by a key that the service does not publish', withoutKeys(), /not in the key directory/],
  ])('an agent throws for a receipt %s', async (_what, fetching, problem) => {
    const agent = Agent.generate(forumOf());
    await agent.register(REGISTRATION);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    const victim = Agent.generate(forumOf(fetching));
    const joining = victim.register(REGISTRATION).then(() => victim.joinChamber(chamberId));
    await expect(joining).rejects.toMatchObject({ code: 'CLIENT_ERR_RECEIPT', detail: expect.stringMatching(problem) });
  });
});

/** A service that changes a header of signed responses of a chamber. */
function replacing(name: string, change: (value: string) => string): Fetching {
  return async (url, init) => {
    const response = await fetch(url, init);
    const value = response.headers.get(name);
    if (value === null || !response.headers.has('signature') || !url.includes('/chambers/')) return response;
    const headers = new Headers(response.headers);
    headers.set(name, change(value));
    return new Response(await response.text(), { status: response.status, headers });
  };
}

function withoutKeys(): Fetching {
  return async (url, init) => (url.includes('/.well-known/') ? Response.json({ keys: [] }) : fetch(url, init));
}

it('a move does not fail because a concurrent move of the same agent is aborted during its first read', async () => {
  const chamberId = await playedIn(Agent.generate(forumOf()));
  const stop = new AbortController();
  let reads = 0;
  const fetching: Fetching = async (url, init) => {
    if (new URL(url).pathname !== '/' || ++reads > 1) return await fetch(url, init);
    return await new Promise((_resolve, reject) => {
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason), { once: true });
    });
  };
  const agent = Agent.generate(forumOf(fetching));
  const [aborted, other] = [agent.pass(chamberId, { signal: stop.signal }), agent.pass(chamberId)];
  aborted.catch(() => {});
  const otherEnd = other.catch((error: unknown) => error);
  await until(() => reads > 0);
  stop.abort(new Error('aborted'));
  await expect(aborted).rejects.toThrow('aborted');
  expect(await otherEnd).toMatchObject({ code: 'FORUM_ERR_SIGNATURE', step: 'registration' });
});

it('a service with two histories is detected by the first move that is sent from one to the other', async () => {
  const folder = temporaryFolder();
  const clock = new AdvancedClock();
  const PUBLIC_URL = 'http://forum.test';
  const open = (name: string) =>
    openService({ DATABASE_PATH: join(folder, name, 'chambers.db'), PUBLIC_URL }, { clock: passing(clock.read) });
  cpSync(temporaryFolder(), join(folder, 'one'), { recursive: true });
  let one = await open('one');
  let target = one.url;
  const forum = () =>
    new ForumClient(PUBLIC_URL, { fetch: (url, init) => fetch(url.replace(PUBLIC_URL, target), init) });
  const [ann, bob] = [Agent.generate(forum()), Agent.generate(forum())];
  await ann.register(REGISTRATION);
  await bob.register(REGISTRATION);
  const { chamberId } = await ann.createChamber(newChamber(clock.read()));
  await ann.joinChamber(chamberId);
  await one.stop();
  cpSync(join(folder, 'one'), join(folder, 'two'), { recursive: true });
  one = await open('one');
  const two = await open('two');
  try {
    target = one.url;
    await bob.joinChamber(chamberId);
    target = two.url;
    const cat = Agent.generate(forum());
    await cat.register(REGISTRATION);
    await cat.joinChamber(chamberId);
    clock.advance(PHASE_MILLIS);
    await ann.propose(chamberId, { name: 'Rain', ticker: 'RAIN' });
    target = one.url;
    await expect(ann.pass(chamberId)).rejects.toMatchObject({
      code: 'FORUM_ERR_HISTORY',
      history: { eventId: 4, seen: expect.stringMatching(/^0x/), leaf: null },
    });
  } finally {
    await Promise.all([one.stop(), two.stop()]);
  }
});
