// Tests `?end=settled`: the stream of a chamber ends after its last line once the chamber is over.
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { TX_HASH } from '../../src/moves/samples.ts';
import { allocationOf, recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { consume, openSource, page, subscribe, take } from '../kit/consumers.ts';
import { call, createChamber, debating, type Running, run } from '../kit/service.ts';

const ENDING = 'end=settled';

async function inDebate() {
  const running = await run();
  const chamber = await debating(running);
  return { running, ...chamber, stream: `/chambers/${chamber.id}/stream` };
}

async function settle({ service, clock }: Running, id: number): Promise<void> {
  clock.set(clock.read() + 5 * HOUR);
  await recordCommit(service.forum, id);
}

it('a WebSocket with end=settled closes with 1000 once the chamber is committed, and others stay open', async () => {
  const { running, id, stream } = await inDebate();
  const ending = await consume(running, `${stream}?after=0&${ENDING}`);
  const endless = await consume(running, `${stream}?after=0`);
  await ending.until(2);
  const closing = once(ending.socket, 'close');
  await settle(running, id);
  const [code, reason] = await closing;
  expect([code, String(reason)]).toEqual([1000, 'the chamber is over']);
  await endless.until(3);
  expect(ending.lines).toEqual(await page(running, `/chambers/${id}/events`));
  expect([endless.lines, endless.closeCode]).toEqual([ending.lines, undefined]);
});

it('a stream with end=settled closes after history if the chamber is over already', async () => {
  const { running, id, stream } = await inDebate();
  await settle(running, id);
  for (const [after, count] of [
    [0, 3],
    [2, 1],
    [3, 0],
  ] as const) {
    const consumer = await consume(running, `${stream}?after=${after}&${ENDING}`);
    expect(await consumer.closed()).toBe(1000);
    expect(consumer.lines).toHaveLength(count);
  }
});

it('server-sent events with end=settled end with a comment, and a browser that reconnects gets 204', async () => {
  const { running, id, stream } = await inDebate();
  const source = await openSource(running, `${stream}?after=0&${ENDING}`);
  await take(source, 2);
  await settle(running, id);
  expect((await take(source, 1)).map(({ id }) => id)).toEqual(['3']);
  expect((await source.next()).done).toBe(true);
  const headers = { accept: 'text/event-stream', 'last-event-id': '3' };
  expect((await fetch(`${running.url}${stream}?${ENDING}`, { headers })).status).toBe(204);
});

it('a stream with end=settled waits for the deployments of graduated ideas', async () => {
  const { running, by, stream } = await inDebate();
  const { forum } = running.service;
  expect(await createChamber(running, by)).toBe(2);
  await call(running, by, ['POST', '/chambers/2/join']);
  running.clock.set(running.clock.read() + HOUR);
  await call(running, by, ['POST', '/chambers/2/propose', { name: 'Rain', ticker: 'RAIN' }]);
  running.clock.set(running.clock.read() + 2 * HOUR);
  const { commit, reveal } = allocationOf(2, by, { 'idea-1': 10_000 });
  await call(running, by, ['POST', '/chambers/2/allocate/commit', commit]);
  running.clock.set(running.clock.read() + HOUR);
  await call(running, by, ['POST', '/chambers/2/allocate/reveal', reveal]);
  const consumer = await consume(running, `${stream.replace('1', '2')}?after=0&${ENDING}`);
  await settle(running, 2);
  await consumer.until(6);
  const failed = {
    type: 'idea.deploy_failed',
    payload: { ideaId: 'idea-1', txHash: TX_HASH, reason: 'reverted' },
  } as const;
  expect(consumer.closeCode).toBe(undefined);
  await forum.submit({ operation: 'record', chamberId: 2, fact: failed });
  expect(await consumer.closed()).toBe(1000);
  expect(consumer.lines).toHaveLength(7);
});

it.each(['end=never', 'end=', 'end=settled&end=settled'])('a stream with %s is rejected', async (query) => {
  const { running, stream } = await inDebate();
  expect(await subscribe(running, `${stream}?${query}`)).toMatchObject({ refusal: { status: 400 } });
});
