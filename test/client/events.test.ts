import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import {
  type AccountEvent,
  type Agent,
  type Cursor,
  ForumClient,
  fileCursor,
  type VerifiedLine,
} from '../../src/client/index.ts';
import { serve } from '../kit/serve.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { openProxy } from './cuttable-proxy.ts';
import { newAgent, newChamber, PHASE_MILLIS, runLiveService, sharedLiveService } from './live-service.ts';

const MOVES = 40;

// The discard port: nothing listens on it.
const UNUSED = 'http://127.0.0.1:9';

const service = sharedLiveService();
let agent: Agent;
beforeAll(async () => {
  agent = await newAgent(service);
});

describe('events', () => {
  it('events arrive once each and in order while the connection is cut repeatedly', async () => {
    const proxy = await openProxy(service.baseUrl);
    const chamberId = await talkingChamber();
    const seen: number[] = [];
    for await (const { eventId } of new ForumClient(proxy.baseUrl).events(chamberId)) {
      seen.push(eventId);
      if (eventId % 7 === 0) proxy.cut();
      if (eventId < MOVES) await agent.debate(chamberId, { comment: `after ${eventId}` });
      else break;
    }
    expect(seen).toEqual(Array.from({ length: MOVES }, (_, i) => i + 1));
  });

  it('events of all chambers arrive once each while the connection is cut, and resume after a cursor', async () => {
    const proxy = await openProxy(service.baseUrl);
    const [one, two] = [await talkingChamber(), await talkingChamber()];
    const seen: string[] = [];
    const goal = `${two}:4`;
    for await (const { cursor, event } of new ForumClient(proxy.baseUrl).allLines()) {
      if (event.chamberId !== one && event.chamberId !== two) continue;
      seen.push(cursor);
      if (cursor === `${two}:3`) await agent.debate(two, { comment: 'fourth' });
      if (event.eventId === 2) proxy.cut();
      if (cursor === goal) break;
    }
    const cursors = [one, two].flatMap((id) => [1, 2, 3].map((eventId) => `${id}:${eventId}`));
    expect(seen).toEqual([...cursors, goal]);
    const resumed = await service.forum.allLines({ after: `${two}:3` }).next();
    expect(resumed.value).toMatchObject({ cursor: goal });
    const unknown = service.forum.allLines({ after: '1:999999' }).next();
    await expect(unknown).rejects.toMatchObject({ code: 'FORUM_ERR_VALIDATION' });
  });

  it('events resume after a stored cursor', async () => {
    const chamberId = await talkingChamber();
    const cursorStore = fileCursor(join(temporaryFolder(), 'cursor.json'));
    const first = await take(service.forum.lines(chamberId, { cursorStore }), 3);
    // The reader stopped while it was handling the third event, so this event arrives again.
    const rest = await take(service.forum.lines(chamberId, { cursorStore }), 1);
    expect([...first, ...rest].map(({ eventId }) => eventId)).toEqual([1, 2, 3, 3]);
    expect(await cursorStore.load()).toEqual({ eventId: 2, leaf: first[1]?.leaf });
  });

  it('events have the same lines as the history', async () => {
    const chamberId = await talkingChamber();
    const live = await take(service.forum.lines(chamberId), 3);
    const stored: VerifiedLine[] = [];
    for await (const line of service.forum.history(chamberId, { after: 1 })) stored.push(line);
    expect(stored).toEqual(live.slice(1));
  });

  it('events of an account are its lines, each checked against the previous line', async () => {
    const lines: VerifiedLine<AccountEvent>[] = [];
    for await (const line of service.forum.accountHistory(agent.did)) lines.push(line);
    expect(lines.map(({ event }) => event.type)).toEqual(['agent.registered', 'agent.registered']);
    expect(lines[1]?.event.prev).toBe(lines[0]?.leaf);
    const text = await (await fetch(`${service.baseUrl}/agents/${agent.did}/events`)).text();
    expect(lines.map(({ line }) => `${line}\n`).join('')).toBe(text);
    expect(text).not.toContain('agent@example.org');
  });

  it('events end with the signal’s reason', async () => {
    const chamberId = await talkingChamber();
    const stop = new AbortController();
    const reading = take(service.forum.lines(chamberId, { signal: stop.signal }), 1_000);
    stop.abort(new Error('seen enough'));
    await expect(reading).rejects.toThrow('seen enough');
  });

  it('events of an unknown chamber are not found', async () => {
    await expect(take(service.forum.lines(999), 1)).rejects.toMatchObject({ code: 'FORUM_ERR_NOT_FOUND' });
    await expect(take(service.forum.history(999), 1)).rejects.toMatchObject({ code: 'FORUM_ERR_NOT_FOUND' });
  });

  it('events after a cursor beyond the head are rejected with the reason', async () => {
    const chamberId = await talkingChamber();
    await expect(take(service.forum.lines(chamberId, { after: 99 }), 1)).rejects.toMatchObject({
      code: 'FORUM_ERR_VALIDATION',
      detail: expect.stringContaining('beyond the head'),
      head: expect.any(Number),
    });
  });

  it('events are rejected with the reason if there are too many streams', async () => {
    const small = await runLiveService({ STREAMS_PER_ADDRESS_MAX: '1' });
    const { chamberId } = await (await newAgent(small)).createChamber(newChamber(small.now()));
    const open = small.forum.lines(chamberId);
    await open.next();
    const impatient = new ForumClient(small.baseUrl, { patienceMillis: 0 });
    for (const refused of [impatient.lines(chamberId), impatient.allLines()]) {
      await expect(refused.next()).rejects.toMatchObject({ code: 'FORUM_ERR_RATE' });
    }
    await open.return(undefined);
  });

  it('events are unreachable if the network passes HTTP but not WebSockets', async () => {
    const chamberId = await talkingChamber();
    const withoutUpgrades = await serve(async (request, response) => {
      const { status, headers, body } = await fetch(service.baseUrl + request.url, {
        headers: { accept: request.headers.accept ?? '' },
      });
      response.writeHead(status, { 'content-type': headers.get('content-type') ?? '' }).flushHeaders();
      response.once('close', () => void body?.cancel());
    });
    const forum = new ForumClient(withoutUpgrades, { patienceMillis: 0 });
    await expect(take(forum.lines(chamberId), 1)).rejects.toMatchObject({
      code: 'CLIENT_ERR_UNREACHABLE',
      detail: expect.stringContaining('proxy'),
    });
  });

  it('events of a service that never responded are unreachable', async () => {
    const forum = new ForumClient(UNUSED, { patienceMillis: 0 });
    await expect(take(forum.lines(1), 1)).rejects.toMatchObject({ code: 'CLIENT_ERR_UNREACHABLE' });
  });
});

describe('a broken chain', () => {
  it.each<[string, (lines: string[]) => string[], Cursor | undefined]>([
    ['an altered line', ([a = '', b = '', c = '']) => [a, b.replace('joined', 'joinee'), c], undefined],
    ['a dropped line', ([a = '', , c = '']) => [a, c], undefined],
    ['reordered lines', ([a = '', b = '', c = '']) => [b, a, c], undefined],
    ['a repeated line', ([a = '']) => [a, a], undefined],
    ['a line that is not an event', ([a = '']) => [a, '[]'], undefined],
    ['another log under the same URL', (lines) => lines.slice(1), { eventId: 1, leaf: `0x${'ab'.repeat(32)}` }],
  ])('the client throws if the chain of lines is broken by %s', async (_, tamper, after) => {
    const chamberId = await talkingChamber();
    const genuine = (await take(service.forum.lines(chamberId), 3)).map(({ line }) => line);
    const impostor = await openImpostor(tamper(genuine));
    const reading = take(new ForumClient(impostor.baseUrl).lines(chamberId, after === undefined ? {} : { after }), 9);
    await expect(reading).rejects.toMatchObject({ code: 'CLIENT_ERR_CHAIN', retryable: false });
    impostor.close();
  });
});

describe('proofs', () => {
  it('proofs are verified before they are returned', async () => {
    const chamberId = await talkingChamber();
    const [, second] = await take(service.forum.lines(chamberId), 3);
    const proof = await service.forum.inclusionProof(chamberId, 2);
    expect(proof).toMatchObject({ eventId: 2, leaf: second?.leaf, eventCount: 3 });
    const { toRoot } = await service.forum.consistency(chamberId, { from: 1, to: 3 });
    expect(toRoot).toBe(proof.root);
  });

  it('invalid proofs are rejected', async () => {
    const chamberId = await talkingChamber();
    const zero = `0x${'00'.repeat(32)}`;
    const lying = async (url: string, init: RequestInit) => {
      const body = (await (await fetch(url, init)).json()) as object;
      return new Response(JSON.stringify({ ...body, root: zero, toRoot: zero }));
    };
    const forum = new ForumClient(service.baseUrl, { fetch: lying });
    await expect(forum.inclusionProof(chamberId, 1)).rejects.toMatchObject({ code: 'CLIENT_ERR_PROOF' });
    const claim = forum.consistency(chamberId, { from: 1, to: 3 });
    await expect(claim).rejects.toMatchObject({ code: 'CLIENT_ERR_PROOF' });
  });
});

/** A chamber in DEBATE after three events: created, joined, debated. */
async function talkingChamber(): Promise<number> {
  const { chamberId } = await agent.createChamber(newChamber(service.now()));
  await agent.joinChamber(chamberId);
  service.advance(2 * PHASE_MILLIS);
  await agent.debate(chamberId, { comment: 'first' });
  return chamberId;
}

async function take(lines: AsyncIterable<VerifiedLine>, count: number): Promise<readonly VerifiedLine[]> {
  const taken: VerifiedLine[] = [];
  for await (const line of lines) {
    taken.push(line);
    if (taken.length === count) break;
  }
  return taken;
}

/** Sends these lines on every connection. */
async function openImpostor(lines: readonly string[]) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    for (const line of lines) socket.send(line);
  });
  await once(server, 'listening');
  const close = () => {
    for (const client of server.clients) client.terminate();
    server.close();
  };
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
