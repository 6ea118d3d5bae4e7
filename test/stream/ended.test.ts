// Tests that a stream that has ended leaves nothing behind, however long its connection stays open.
import { subscribe as subscribeTo, unsubscribe } from 'node:diagnostics_channel';
import { Agent, get as httpGet } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { openSource, take } from '../kit/consumers.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';

const STREAMS = 2_000;
const STREAMS_PER_ADDRESS_MAX = '2';
/** Node warns if an event has more listeners. */
const LISTENERS_MAX = 10;

/** Ends a chamber with 3 events; resolves to the path of its stream. */
async function endChamber(running: Running): Promise<string> {
  const { id } = await debating(running);
  running.clock.advance(5 * HOUR);
  await recordCommit(running.service.forum, id);
  return `/chambers/${id}/stream?after=0&end=settled`;
}

/** Collects the connections that the process accepts from now on. */
function acceptedSockets(): readonly Socket[] {
  const sockets: Socket[] = [];
  const note = (message: unknown) => void sockets.push((message as { readonly socket: Socket }).socket);
  subscribeTo('net.server.socket', note);
  atEnd(() => void unsubscribe('net.server.socket', note));
  return sockets;
}

/** Returns the whole body of a stream that ends; throws if the request is rejected. */
function readStream(url: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    httpGet(url, { agent, headers: { accept: 'text/event-stream' } }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      if (response.statusCode === 200) resolve(text);
      else reject(new Error(`${response.statusCode} ${text}`));
    }).once('error', reject);
  });
}

it('a stream that ends frees its slot and removes all listeners from its connection', async () => {
  const running = await run({ STREAMS_PER_ADDRESS_MAX });
  const path = await endChamber(running);
  const sockets = acceptedSockets();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  atEnd(() => agent.destroy());
  const first = await readStream(running.url + path, agent);
  expect(first.match(/^id: \d$/gm)).toEqual(['id: 1', 'id: 2', 'id: 3']);
  for (let stream = 1; stream < STREAMS; stream++) expect(await readStream(running.url + path, agent)).toBe(first);
  const [socket, ...others] = sockets as [Socket, ...Socket[]];
  expect(others).toEqual([]);
  for (const name of socket.eventNames()) expect(socket.listenerCount(name)).toBeLessThanOrEqual(LISTENERS_MAX);
  const endless = path.replace('&end=settled', '');
  for (const source of [await openSource(running, endless), await openSource(running, endless)]) {
    expect(await take(source, 3)).toHaveLength(3);
  }
});
