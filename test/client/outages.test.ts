// Gateways, portals and clocks between a client and its service. A function here responds in place of the service.
import { describe, expect, it } from 'vitest';
import { Agent, ForumClient, type ForumClientOptions, type Retry } from '../../src/client/index.ts';
import { TestClock } from '../kit/clock.ts';

const URL = 'http://service.test';

type Respond = (request: { readonly method: string; readonly path: string; readonly body: string }) => Response;

/** Returns a client with its own clock, and the requests that it has sent. */
function clientOf(respond: Respond, options: ForumClientOptions = {}) {
  const clock = new TestClock();
  const sent: { method: string; path: string; body: string; signature: string | null }[] = [];
  const retries: Retry[] = [];
  const fetching = async (url: string, init: RequestInit) => {
    const { method = 'GET' } = init;
    const request = { method, path: url.slice(URL.length), body: String(init.body ?? '') };
    sent.push({ ...request, signature: new Headers(init.headers).get('signature') });
    return respond(request);
  };
  const sleep = async (millis: number, signal?: AbortSignal) => {
    signal?.throwIfAborted();
    clock.advance(millis);
  };
  const forum = new ForumClient(URL, {
    fetch: fetching,
    clock: { now: clock.read, sleep },
    onRetry: (retry) => void retries.push(retry),
    ...options,
  });
  return { forum, clock, sent, retries };
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers });
const portal = () => new Response('<html>\nAccept our terms\n</html>\n', { headers: { 'Content-Type': 'text/html' } });
const busy = (retryAfter: string) =>
  json(429, { error: 'FORUM_ERR_RATE', detail: 'slower' }, { 'Retry-After': retryAfter });
const gateway = (headers: Record<string, string> = {}) => new Response('<html>502</html>', { status: 502, headers });

/** Returns the responses in order; repeats the last one forever. */
function inOrder(...responses: readonly (() => Response)[]): () => Response {
  let count = 0;
  return () => (responses[Math.min(count++, responses.length - 1)] as () => Response)();
}

const chambers = () => json(200, []);
const passed = () => json(200, { eventId: 7, nextTurnAgent: 'did:key:z' });

describe('a response without a wait', () => {
  it.each(['0', '', '0.0'])('the client waits before a retry although Retry-After is %j', async (retryAfter) => {
    const { forum, sent } = clientOf(
      inOrder(chambers, () => busy(retryAfter)),
      { patienceMillis: 3_000 },
    );
    await forum.chambers();
    await expect(forum.chambers()).rejects.toMatchObject({ code: 'FORUM_ERR_RATE' });
    expect(sent.length).toBeLessThan(10);
  });
});

describe('the patience', () => {
  it('patience does not run out early when the wall clock is set an hour ahead', async () => {
    const steady = new TestClock();
    let ahead = 0;
    const respond = inOrder(chambers, gateway, gateway, gateway, chambers);
    const { forum } = clientOf(respond, {
      clock: {
        now: () => steady.read() + ahead,
        steady: steady.read,
        sleep: async (millis) => {
          steady.advance(millis);
          ahead = 3_600_000;
        },
      },
    });
    await forum.chambers();
    expect(await forum.chambers()).toEqual([]);
  });

  it('patience runs out even if the wall clock is set back repeatedly', async () => {
    const steady = new TestClock();
    let behind = 0;
    const { forum, sent } = clientOf(inOrder(chambers, gateway), {
      clock: {
        now: () => steady.read() - behind,
        steady: steady.read,
        sleep: async (millis) => {
          steady.advance(millis);
          behind += millis + 1_000;
        },
      },
    });
    await forum.chambers();
    await expect(forum.chambers()).rejects.toMatchObject({ code: 'CLIENT_ERR_UNREACHABLE' });
    expect(sent.length).toBeLessThan(40);
  });

  it('the default patience is short until the service has responded for the first time', async () => {
    const away = Array.from({ length: 7 }, () => gateway);
    const { forum } = clientOf(inOrder(...away, chambers));
    await expect(forum.chambers()).rejects.toMatchObject({ code: 'CLIENT_ERR_UNREACHABLE' });
    const { forum: patient, clock } = clientOf(inOrder(...away, chambers), { patienceMillis: 60_000 });
    const startedAt = clock.read();
    expect(await patient.chambers()).toEqual([]);
    expect(clock.read() - startedAt).toBeGreaterThan(10_000);
  });

  it('patience does not run down while the machine sleeps', async () => {
    const clock = new TestClock();
    const { forum } = clientOf(inOrder(chambers, gateway, gateway, chambers), {
      clock: { now: clock.read, sleep: async (millis) => clock.advance(millis + 8 * 3_600_000) },
    });
    await forum.chambers();
    expect(await forum.chambers()).toEqual([]);
  });
});

const open = (headers: Record<string, string>) => () =>
  json(409, { error: 'FORUM_ERR_CONFLICT', detail: 'chamber 1 is waiting for its root on the chain' }, headers);

describe('a wait for an outcome', () => {
  const hash = `0x${'11'.repeat(32)}`;
  const over = () =>
    json(200, {
      ...{ chamberId: 1, name: 'Tea', topic: null, createdBy: 'did:key:z', members: [], ideas: [] },
      ...{ abstainedBps: 0, committed: 0, revealed: 0, merkleRoot: hash, committedTxHash: hash },
      ...{ endedAt: '2030-01-01T00:00:00.000Z', lastEventId: 9 },
    });

  it('a wait for an outcome repeats its request only when the service says to', async () => {
    const { forum, clock, sent } = clientOf(inOrder(open({ 'Retry-After': '30' }), open({ 'Retry-After': '3' }), over));
    const startedAt = clock.read();
    expect(await forum.outcome(1, { wait: true })).toMatchObject({ chamberId: 1 });
    expect(sent).toHaveLength(3);
    expect((clock.read() - startedAt) / 1_000).toBeCloseTo(33.3, 0);
  });

  it('a wait for an outcome backs off if the service does not say when to retry', async () => {
    const { forum, clock, sent } = clientOf(
      inOrder(...Array.from({ length: 60 }, () => open({ 'Retry-After': '0' })), over),
    );
    const startedAt = clock.read();
    await forum.outcome(1, { wait: true });
    expect(sent).toHaveLength(61);
    expect(clock.read() - startedAt).toBeGreaterThan(60_000);
  });

  it('a wait for an outcome ends with its signal, and with any other error', async () => {
    const stop = new AbortController();
    const { forum } = clientOf(() => {
      stop.abort(new Error('enough'));
      return open({})();
    });
    await expect(forum.outcome(1, { wait: true, signal: stop.signal })).rejects.toThrow('enough');
    const missing = () => json(404, { error: 'FORUM_ERR_NOT_FOUND', detail: 'chamber not found' });
    const { forum: other } = clientOf(inOrder(open({}), missing));
    await expect(other.outcome(1, { wait: true })).rejects.toMatchObject({ code: 'FORUM_ERR_NOT_FOUND' });
  });

  it('outcome() waits only on request', async () => {
    const { forum, sent } = clientOf(open({ 'Retry-After': '30' }));
    await expect(forum.outcome(1)).rejects.toMatchObject({ code: 'FORUM_ERR_CONFLICT', retryAfterSeconds: 30 });
    expect(sent).toHaveLength(1);
  });
});

describe('a portal that responds with its page', () => {
  it('a portal’s page counts as an outage if the service has responded before', async () => {
    const { forum, retries } = clientOf(inOrder(chambers, portal, portal, chambers));
    await forum.chambers();
    expect(await forum.chambers()).toEqual([]);
    expect(retries.map(({ error }) => error.code)).toEqual(['CLIENT_ERR_UNREACHABLE', 'CLIENT_ERR_UNREACHABLE']);
  });

  it('a portal’s page is never accepted as lines of a log', async () => {
    const empty = () => new Response('', { headers: { 'Content-Type': 'application/x-ndjson' } });
    const { forum } = clientOf(inOrder(chambers, portal, empty));
    await forum.chambers();
    const lines: unknown[] = [];
    for await (const line of forum.history(1)) lines.push(line);
    expect(lines).toEqual([]);
  });

  it('after a portal’s page a move is sent again with the same bytes until its result is known', async () => {
    const respond: Respond = ({ method }) => (method === 'GET' ? json(200, { name: 'Forum', version: '1' }) : move());
    const move = inOrder(portal, ...Array.from({ length: 30 }, () => portal), passed);
    const { forum, sent } = clientOf(respond);
    expect(await Agent.generate(forum).pass(1)).toMatchObject({ eventId: 7 });
    const moves = sent.filter(({ method }) => method === 'POST');
    expect(moves).toHaveLength(32);
    expect(new Set(moves.map(({ signature }) => signature)).size).toBe(1);
  });

  it('a portal gets no command at the first contact', async () => {
    const { forum, sent } = clientOf(portal);
    await expect(Agent.generate(forum).pass(1)).rejects.toMatchObject({ code: 'CLIENT_ERR_ANSWER' });
    await expect(Agent.generate(forum).changePersonality({})).rejects.toMatchObject({ code: 'CLIENT_ERR_ANSWER' });
    expect(sent.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('a gateway that rejects a move with a page of its own', () => {
  it('a move that a gateway rejects with its own page is retried for the patience', async () => {
    const refused = () => new Response('<html>413</html>', { status: 413 });
    const respond: Respond = ({ method }) => (method === 'GET' ? chambers() : refused());
    const { forum } = clientOf(respond, { patienceMillis: 3_000 });
    await forum.chambers();
    await expect(Agent.generate(forum).changePersonality({})).rejects.toMatchObject({ status: 413 });
  });
});

describe('two nodes with different clocks', () => {
  it('the client signs once more for two nodes with different clocks, and then reports the error', async () => {
    const clock = new TestClock();
    let isAhead = false;
    const { forum, sent } = clientOf(
      ({ method }) => {
        if (method === 'GET') return chambers();
        isAhead = !isAhead;
        const serviceTime = new Date(clock.read() + (isAhead ? 1 : -1) * 600_000).toISOString();
        return json(401, { error: 'FORUM_ERR_SIGNATURE', detail: 'age', step: 'age', serviceTime });
      },
      { clock: { now: clock.read, sleep: async (millis) => clock.advance(millis) } },
    );
    await forum.chambers();
    const changing = Agent.generate(forum).changePersonality({});
    await expect(changing).rejects.toMatchObject({ code: 'FORUM_ERR_SIGNATURE', step: 'age' });
    expect(sent.filter(({ method }) => method === 'PUT')).toHaveLength(2);
  });

  it('a move that has expired during two outages is signed again even if the nodes’ clocks differ', async () => {
    const clock = new TestClock();
    const outage = () => {
      clock.advance(400_000);
      return gateway();
    };
    const old = () =>
      json(401, {
        error: 'FORUM_ERR_SIGNATURE',
        detail: 'age',
        step: 'age',
        serviceTime: new Date(clock.read()).toISOString(),
      });
    const change = inOrder(outage, old, outage, old, () => json(200, { personality: {} }));
    const { forum } = clientOf(({ method }) => (method === 'GET' ? chambers() : change()), {
      clock: { now: clock.read, sleep: async (millis) => clock.advance(millis) },
    });
    await forum.chambers();
    expect(await Agent.generate(forum).changePersonality({})).toEqual({ personality: {} });
  });
});

describe('a page of lines that is cut off within a line', () => {
  it('a page that is cut off within a line is read again, and does not end the log', async () => {
    const type = { 'Content-Type': 'application/x-ndjson' };
    const cut = () => new Response('{"eventId":1,"ch', { headers: type });
    const { forum, sent } = clientOf(inOrder(cut, () => new Response('', { headers: type })));
    for await (const _ of forum.history(1));
    expect(sent).toHaveLength(2);
  });
});
