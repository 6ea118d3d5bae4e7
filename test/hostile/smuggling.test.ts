// Request smuggling. The service reads none of these requests as two. The proxies of deploy/ read some as two requests of one client, but the service
// agrees with what they forward, so other clients on the same connections get their own responses.

import { once } from 'node:events';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../src/demo/free-port.ts';
import { PROXIES, startProxy } from '../deploy/recipes.ts';
import { requireInstalled } from '../kit/programs.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { run } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';
import { type SmuggledRequest, smuggledRequests } from './smuggled-requests.ts';

/** The number of concurrent attackers, and of clients after them. */
const BATCH = 48;
/** After this silence, the test assumes that the proxy waits for the rest of a request. */
const SILENT_MILLIS = 400;

const STATUSES = /HTTP\/1\.1 \d+/g;
const NEXT = 'GET /ideas/NEXT HTTP/1.1\r\nHost: forum.test\r\nConnection: close\r\n\r\n';

it('the service rejects each smuggling request, and does not read its remaining bytes as another request', async () => {
  const { url } = await run();
  const wrong: string[] = [];
  for (const batch of batches(smuggledRequests('forum.test'))) {
    await Promise.all(
      batch.map(async ({ title, bytes }) => {
        const socket = await RawSocket.open(url);
        socket.write(Buffer.from(bytes, 'latin1'));
        await socket.receive(/\r\n\r\n.*\}$/s);
        // A body of known length was read to its end, so the connection may continue.
        socket.write(NEXT);
        await socket.closed;
        const [first, ...others] = socket.received.match(STATUSES) ?? [];
        const isNext = others.length === 0 || (others.length === 1 && socket.received.includes('\\"NEXT\\" not found'));
        if (!/ 4(00|17)$/.test(first ?? '') || !isNext) wrong.push(`${title}: ${socket.received}`);
      }),
    );
  }
  expect(wrong).toEqual([]);
});

describe.each(PROXIES)('behind %s', { timeout: 180_000 }, (name) => {
  beforeEach(({ skip }) => {
    requireInstalled(skip, name, 'openssl');
  });

  it('smuggling requests do not affect the responses of other clients', async () => {
    const metricsPort = await freePort();
    const { url } = await run({ METRICS_PORT: String(metricsPort) });
    const [http, port] = [await freePort(), await freePort()];
    const ca = await startProxy(name, { http, https: port, service: Number(new URL(url).port) });
    const ofAttackers: string[][] = [];
    const attack = async ({ bytes }: SmuggledRequest) => {
      const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca });
      atEnd(() => void socket.destroy());
      const received: string[] = [];
      ofAttackers.push(received);
      socket.on('error', () => {}).on('data', (chunk) => received.push(chunk.toString('latin1')));
      const closed = once(socket, 'close');
      socket.write(Buffer.from(bytes, 'latin1'));
      await Promise.race([closed, sleep(SILENT_MILLIS)]);
    };
    const ask = async (ticker: string) => {
      const [response] = await once(request({ port, path: `/ideas/${ticker}`, ca, agent: false }).end(), 'response');
      const body = await text(response);
      return body.includes(`\\"${ticker}\\" not found`) ? [] : [`${ticker}: ${response.statusCode} ${body}`];
    };
    const wrong: string[] = [];
    let asked = 0;
    for (const [index, batch] of batches(smuggledRequests(`localhost:${port}`)).entries()) {
      const titles = `after ${batch.map(({ title }) => title).join(', ')}: `;
      await Promise.all(batch.map(attack));
      const clients = await Promise.all(batch.map((_, client) => ask(`OWN${index}-${client}`)));
      wrong.push(...clients.flat().map((problem) => titles + problem));
      asked += clients.length;
    }
    expect(wrong).toEqual([]);
    const hiddenReads = async () => (await ideasRead(metricsPort)) - asked;
    const hiddenResponses = () => ofAttackers.flatMap((received) => received.join('').match(/SMUGGLED/g) ?? []).length;
    await expect.poll(async () => (await hiddenReads()) - hiddenResponses(), { timeout: 10_000 }).toBe(0);
  });
});

/** The number of requests for an idea that the service has read. */
async function ideasRead(metricsPort: number): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const counts = metrics.matchAll(
    /^chambers_request_duration_seconds_count\{[^}]*route="\/ideas\/:ticker"[^}]*\} (\d+)$/gm,
  );
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

function batches<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, index) =>
    items.slice(index * BATCH, (index + 1) * BATCH),
  );
}
