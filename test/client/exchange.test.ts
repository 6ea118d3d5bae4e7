import { describe, expect, it } from 'vitest';
import { Agent, ForumClient, type Retry } from '../../src/client/index.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { TestClock } from '../kit/clock.ts';
import { newAgent, newChamber, REGISTRATION, sharedLiveService } from './live-service.ts';

// The discard port: nothing listens on it.
const UNUSED = 'http://127.0.0.1:9';

const live = sharedLiveService();

describe('a lost response', () => {
  it('after a lost response the same bytes are sent again, and the move is made once', async () => {
    const bodies: RequestInit[] = [];
    const fetchLosingResponses = async (url: string, init: RequestInit) => {
      if (init.method === 'GET') return fetch(url, init);
      bodies.push(init);
      const response = await fetch(url, init);
      if (bodies.length % 2 === 1) throw new TypeError('the connection was cut');
      return response;
    };
    const agent = Agent.generate(new ForumClient(live.baseUrl, { fetch: fetchLosingResponses }));
    await agent.register(REGISTRATION);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    expect(await agent.joinChamber(chamberId)).toEqual({ ok: true, turnOrder: 0 });
    expect(bodies).toHaveLength(8);
    expect(bodies[1]).toEqual({ ...bodies[0], signal: expect.anything() });
    const { asOfEventId } = await live.forum.merklePreview(chamberId);
    expect(asOfEventId).toBe(2);
  });

  it('a service that cannot confirm a move gets the same bytes again, beyond the patience', async () => {
    const bodies: RequestInit[] = [];
    const unconfirmed = { error: 'FORUM_ERR_UNAVAILABLE', detail: 'the log cannot be reached', mayBeAccepted: true };
    const fetchUnconfirmed = async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      if (!url.endsWith('/join')) return response;
      bodies.push(init);
      return bodies.length > 2 ? response : Response.json(unconfirmed, { status: 503 });
    };
    const agent = await newAgent(live, { fetch: fetchUnconfirmed, patienceMillis: 0 });
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    expect(await agent.joinChamber(chamberId)).toEqual({ ok: true, turnOrder: 0 });
    expect(new Set(bodies.map(({ headers }) => new Headers(headers).get('Signature'))).size).toBe(1);
    expect(bodies).toHaveLength(3);
    const { asOfEventId } = await live.forum.merklePreview(chamberId);
    expect(asOfEventId).toBe(2);
  });

  it('a request whose response was lost ends with the signal’s reason', async () => {
    const agent = await newAgent(live, { fetch: fetchLosingMoves });
    const call = new AbortController();
    const joined = agent.createChamber(newChamber(live.now()), { signal: call.signal });
    call.abort(new Error('changed my mind'));
    await expect(joined).rejects.toThrow('changed my mind');
  });
});

describe('a service that is down', () => {
  it('a service that is down is reported as unreachable once the patience runs out', async () => {
    const forum = new ForumClient(UNUSED, { patienceMillis: 0 });
    await expect(forum.chambers()).rejects.toMatchObject({
      code: 'CLIENT_ERR_UNREACHABLE',
      retryable: true,
      status: undefined,
    });
    const agent = Agent.generate(forum);
    await expect(agent.joinChamber(1)).rejects.toMatchObject({ code: 'CLIENT_ERR_UNREACHABLE' });
  });

  it('the first contact with a service that is down fails within 5 s and says what to do', async () => {
    const begin = performance.now();
    const url = `http://127.0.0.1:${await freePort()}`;
    const [reading, registering, listening] = [new ForumClient(url), Agent.generate(url), Agent.generate(url)];
    const calls = [
      reading.chambers(),
      registering.register(REGISTRATION),
      listening.todos().next(),
      reading.events(1).next(),
    ];
    const outcomes = await Promise.allSettled(calls);
    expect(performance.now() - begin).toBeLessThan(5_500);
    const message = expect.stringMatching(/^no response from .*: ECONNREFUSED\. Is the service running\?/);
    const reason = expect.objectContaining({ code: 'CLIENT_ERR_UNREACHABLE', message });
    expect(outcomes).toEqual(calls.map(() => ({ status: 'rejected', reason })));
  });

  it('requests to a service that is down are retried later, and each retry is reported', async () => {
    const clock = new TestClock();
    const sleep = async (millis: number) => void clock.advance(millis);
    const [outageBegin, outageEnd] = [clock.read() + 1_000, clock.read() + 30_000];
    const reached: string[] = [];
    const failing = async (url: string, init: RequestInit) => {
      const isOut = clock.read() >= outageBegin && clock.read() < outageEnd;
      if (isOut) throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
      reached.push(url);
      return fetch(url, init);
    };
    const retries: Retry[] = [];
    const onRetry = (retry: Retry) => void retries.push(retry);
    const forum = new ForumClient(live.baseUrl, { fetch: failing, clock: { now: clock.read, sleep }, onRetry });
    await forum.chambers();
    clock.advance(1_000);
    await forum.chambers();
    expect(clock.read()).toBeGreaterThanOrEqual(outageEnd);
    expect(reached).toHaveLength(2);
    expect(retries.length).toBeGreaterThan(3);
    const [{ error, waitMillis }] = retries as [Retry];
    expect(error).toMatchObject({ code: 'CLIENT_ERR_UNREACHABLE', message: expect.stringMatching(/ECONNREFUSED$/) });
    expect(waitMillis).toBeGreaterThan(0);
  });

  it('requests are retried after the time in Retry-After', async () => {
    const responses = [
      respond(429, { error: 'FORUM_ERR_RATE', detail: 'slower' }, { 'Retry-After': '0' }),
      respond(503, { error: 'FORUM_ERR_UNAVAILABLE', detail: 'the disk is full' }, { 'Retry-After': '0' }),
      respond(200, { name: 'Forum', version: '1' }),
    ];
    const forum = new ForumClient('http://service.test', { fetch: async () => responses.shift() as Response });
    expect(await forum.info()).toEqual({ name: 'Forum', version: '1' });
  });

  it('requests are not retried if Retry-After exceeds the patience', async () => {
    const busy = respond(429, { error: 'FORUM_ERR_RATE', detail: 'slower' }, { 'Retry-After': '3600' });
    const forum = new ForumClient('http://service.test', { fetch: async () => busy });
    await expect(forum.info()).rejects.toMatchObject({ code: 'FORUM_ERR_RATE', status: 429, retryable: true });
  });
});

describe('a response that is not the service’s', () => {
  it.each([
    ['a web page', () => new Response('<html>')],
    ['an error in another format', () => respond(404, { message: 'no' })],
    ['a redirect', () => new Response(null, { status: 302, headers: { Location: 'http://elsewhere.test' } })],
  ])('a response that is not the service’s is reported as such: %s', async (_, make) => {
    const forum = new ForumClient('http://service.test', { fetch: async () => make() });
    await expect(forum.health()).rejects.toMatchObject({ code: 'CLIENT_ERR_ANSWER' });
  });
});

function respond(status: number, body: object, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}

async function fetchLosingMoves(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (url.endsWith('/chambers')) throw new TypeError('the connection was cut');
  return response;
}
