// GET /me/todo over sockets: server-sent events, and waits when the service stops.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { HOUR } from '../kit/clock.ts';
import { openSource, openText, take } from '../kit/consumers.ts';
import { followed, Gate } from '../kit/members.ts';
import { heapHeld } from '../kit/memory-held.ts';
import { call, createChamber, newAgent, type Running, run } from '../kit/service.ts';
import type { Signer } from '../kit/signer.ts';
import { eventually } from '../kit/until.ts';

const TODO = '/me/todo';

function openTodo(running: Running, by: Signer) {
  return openSource(running, TODO, signedTodo(running, by));
}

function signedTodo({ url, clock }: Running, by: Signer) {
  return by.sign({ method: 'GET', url: url + TODO, body: undefined, created: clock.seconds });
}

/** Opens a chamber in PROPOSAL, in the first agent's turn. */
async function proposing(running: Running) {
  const [ann, bob] = [await newAgent(running), await newAgent(running)];
  const chamberId = await createChamber(running, ann);
  for (const by of [ann, bob]) await call(running, by, ['POST', `/chambers/${chamberId}/join`]);
  running.clock.advance(HOUR);
  return { ann, bob, pass: (by: Signer) => call(running, by, ['POST', `/chambers/${chamberId}/pass`]) };
}

async function next(source: Awaited<ReturnType<typeof openTodo>>) {
  const [event] = await take(source, 1);
  return JSON.parse(event?.data ?? '');
}

describe('server-sent events of /me/todo', () => {
  it('server-sent events of /me/todo send the whole response at once and on each change, with its version', async () => {
    const running = await run();
    const { ann, bob, pass } = await proposing(running);
    const source = await openTodo(running, bob);
    expect(await next(source)).toEqual(await call(running, bob, ['GET', TODO]));
    await pass(ann);
    expect(await next(source)).toMatchObject({ todo: [{ must: 'pass' }] });
    await pass(bob);
    expect(await next(source)).toEqual(await call(running, bob, ['GET', TODO]));
  });

  it('server-sent events of /me/todo send a change at once even if its chamber is beyond the limit of a response', async () => {
    const running = await run();
    const [ann, bob] = [await newAgent(running), await newAgent(running)];
    let last = 0;
    for (let count = 0; count < 201; count++) last = await createChamber(running, ann);
    const source = await openTodo(running, ann);
    const { more, todo, version } = await next(source);
    expect(more).toBe(true);
    expect(todo).not.toContainEqual(expect.objectContaining({ chamberId: last }));
    await call(running, bob, ['POST', `/chambers/${last}/join`]);
    const changed = await next(source);
    expect(changed).toMatchObject({ more: true, todo });
    expect(changed.version).not.toBe(version);
  });

  it('server-sent events of /me/todo report an expired turn, which is not an event', async () => {
    const running = await run();
    const ann = await newAgent(running);
    const chamberId = await createChamber(running, ann, { turnSeconds: 1 });
    await call(running, ann, ['POST', `/chambers/${chamberId}/join`]);
    running.clock.advance(HOUR + 900);
    const source = await openTodo(running, ann);
    const [{ turnEndsAt }] = (await next(source)).todo;
    running.clock.advance(100);
    const [{ turnEndsAt: later }] = (await next(source)).todo;
    expect(Date.parse(later) - Date.parse(turnEndsAt)).toBe(1000);
  });

  it('server-sent events of /me/todo are aborted if the list cannot be read, and release their slot', async () => {
    const running = await run({ WAITS_PER_DID_MAX: '1' });
    const { ann, bob, pass } = await proposing(running);
    const { lists } = running.service.forum.store;
    const source = await openTodo(running, bob);
    await next(source);
    const failing = vi.spyOn(lists, 'listMemberships').mockRejectedValue(new Error('the disk is gone'));
    const end = source.next();
    await pass(ann);
    await expect(end).rejects.toThrow();
    failing.mockRestore();
    const again = await eventually(() => openTodo(running, bob));
    expect(await next(again)).toMatchObject({ todo: [{ must: 'pass' }] });
  });

  it('server-sent events of /me/todo leave no timers or listeners if the reader disconnects while a list is prepared', async () => {
    const running = await run();
    const { bob } = await proposing(running);
    const { forum } = running.service;
    const streams = followed(forum);
    const { lists } = forum.store;
    const read = lists.listMembersAt.bind(lists);
    const gate = new Gate();
    gate.isClosed = true;
    vi.spyOn(lists, 'listMembersAt').mockImplementation(async (seats) => {
      await gate.pass();
      return read(seats);
    });
    const closed = new Promise<void>((resolve) => {
      const onStart = (message: unknown) => {
        const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
        if (request.url === TODO) response.once('close', resolve);
      };
      subscribe('http.server.request.start', onStart);
      onTestFinished(() => void unsubscribe('http.server.request.start', onStart));
    });
    const reader = new AbortController();
    const url = running.url + TODO;
    const signed = bob.sign({ method: 'GET', url, body: undefined, created: running.clock.seconds });
    const opening = fetch(url, { headers: { ...signed, accept: 'text/event-stream' }, signal: reader.signal });
    const gone = expect(opening.then((response) => response.text())).rejects.toThrow();
    await eventually(() => expect([gate.isClosed, streams()]).toEqual([false, 2]));
    reader.abort();
    await gone;
    await closed;
    gate.open();
    await eventually(() => expect(streams()).toBe(0), 5_000);
  });

  it('server-sent events of /me/todo respond to HEAD without opening a stream', async () => {
    const running = await run({ WAITS_PER_DID_MAX: '1' });
    const bob = await newAgent(running);
    const url = running.url + TODO;
    const signed = bob.sign({ method: 'HEAD', url, body: undefined, created: running.clock.seconds });
    const response = await fetch(url, { method: 'HEAD', headers: { ...signed, accept: 'text/event-stream' } });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    await openTodo(running, bob);
  });

  it('server-sent events of /me/todo count as waiting requests until they end', async () => {
    const running = await run({ WAITS_PER_DID_MAX: '1' });
    const { bob } = await proposing(running);
    const source = await openTodo(running, bob);
    await next(source);
    await expect(openTodo(running, bob)).rejects.toThrow('429');
    await source.return(undefined);
    await eventually(() => openTodo(running, bob));
  });

  it('server-sent events of /me/todo use no more memory after thousands of keep-alives', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const running = await run({ STREAM_PING_SECONDS: '30', STREAM_DEAD_SECONDS: '60' });
    const { bob } = await proposing(running);
    const text = (await openText(running, TODO, signedTodo(running, bob))).getReader();
    expect((await text.read()).value).toMatch(/^data: .*\n\n$/);
    const keepAlives = async (count: number) => {
      for (let sent = 0; sent < count; sent++) {
        vi.advanceTimersByTime(30_000);
        expect((await text.read()).value).toBe(': keep-alive\n');
      }
      return heapHeld();
    };
    const before = await keepAlives(500);
    // Each keep-alive once kept 300 bytes.
    expect((await keepAlives(5_000)) - before).toBeLessThan(500_000);
    vi.useRealTimers();
  });

  it('server-sent events of /me/todo end when the service stops', async () => {
    const running = await run();
    const { bob } = await proposing(running);
    const source = await openTodo(running, bob);
    await next(source);
    const [end] = await Promise.all([source.next(), running.stop()]);
    expect(end.done).toBe(true);
  });
});

describe('a wait at /me/todo', () => {
  it('a wait at /me/todo gets the current list when the service stops, and the connection is closed', async () => {
    const running = await run();
    const { bob } = await proposing(running);
    const { version } = await call(running, bob, ['GET', TODO]);
    const url = `${running.url}${TODO}?wait=60&since=${version}`;
    const reads = vi.spyOn(running.service.forum.todoLists, 'of');
    const headers = bob.sign({ method: 'GET', url, body: undefined, created: running.clock.seconds });
    const waiting = fetch(url, { headers });
    // The first read finds the chamber; then the request follows it and reads again.
    await eventually(() => expect(reads.mock.calls.length).toBeGreaterThanOrEqual(2));
    const [response] = await Promise.all([waiting, running.stop()]);
    expect(response.headers.get('connection')).toBe('close');
    expect(await response.json()).toMatchObject({ todo: [{ must: 'wait' }], version });
  });
});
