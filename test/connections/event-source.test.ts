// A response of server-sent events, written only as fast as the reader takes it.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { expect, it } from 'vitest';
import { type EventSink, respondEvents } from '../../src/connections/event-source.ts';
import { Liveness } from '../../src/connections/liveness.ts';
import { Quota } from '../../src/connections/quota.ts';
import { atEnd } from '../kit/temporary.ts';

/** More bytes than a socket buffers. */
const LARGE = Buffer.alloc(16_000_000, 'x');

async function openSink(): Promise<{ readonly sink: EventSink; readonly response: Response }> {
  const liveness = new Liveness({ pingIntervalMs: 60_000, deadAfterMs: 120_000 });
  const quota = new Quota(1, 'streams');
  const { promise: opened, resolve } = Promise.withResolvers<EventSink>();
  const respond = (_request: Request, { incoming, outgoing }: HttpBindings) =>
    respondEvents({
      incoming,
      outgoing,
      liveness,
      quota,
      caller: 'reader',
      headers: {},
      open: (sink) => {
        resolve(sink);
        void sink.send(Buffer.from(': open\n\n'));
        return () => {};
      },
    });
  const server = createServer(getRequestListener(respond as Parameters<typeof getRequestListener>[0]));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    liveness.close();
    server.closeAllConnections();
    server.close();
  });
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { sink: await opened, response };
}

it('an event source resolves every waiting send when the socket drains', { timeout: 10_000 }, async () => {
  const { sink, response } = await openSink();
  const page = sink.send(LARGE);
  const note = sink.send(Buffer.from('event: note\ndata: {}\n\n'));
  let isSettled = false;
  page.then(() => {
    isSettled = true;
  }, expect.unreachable);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isSettled).toBe(false);
  const reading = (response.body as ReadableStream<Uint8Array>).pipeTo(new WritableStream());
  await Promise.all([page, note]);
  sink.end();
  await reading;
});

it('an event source releases waiting senders when the reader disconnects', { timeout: 10_000 }, async () => {
  const { sink, response } = await openSink();
  const waiting = [sink.send(LARGE), sink.send(LARGE)];
  await response.body?.cancel();
  await Promise.all([...waiting, sink.send(LARGE)]);
});
