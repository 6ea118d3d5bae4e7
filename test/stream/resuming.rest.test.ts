// Tests a consumer that loses its connection a thousand times while the log grows: no gap, no repeat, no reordering.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Consumer, consume, openSource, page, take } from '../kit/consumers.ts';
import { appendDebates } from '../kit/debates.ts';
import { Random } from '../kit/random.ts';
import { runDebating } from '../kit/service.ts';
import { IS_ON_POSTGRES } from '../kit/store.ts';

/** Reads from PostgreSQL take longer than reads of a file. */
const DISCONNECTS = IS_ON_POSTGRES ? 200 : 1_000;
const SOURCE_DISCONNECTS = 100;
const LINES_MAX = 6;

/** How many lines the debate may be ahead of its consumer, so that the consumer gets history, live lines and the transition between them. */
const LEAD_MAX = 60;

/** Opens a chamber with a debate that continues until `quiet` is called, at most LEAD_MAX ahead of the received lines. */
async function noisyChamber(lines: readonly string[]) {
  const { running, by, id } = await runDebating();
  let isOver = false;
  const writing = (async () => {
    for (let lastEventId = 2; !isOver; ) {
      if (lastEventId >= lines.length + LEAD_MAX) await sleep(1);
      else {
        await appendDebates(running, { did: by.did, chamberId: id, count: 1 });
        lastEventId++;
      }
    }
  })();
  const quiet = async () => {
    isOver = true;
    await writing;
    return page(running, `/chambers/${id}/events?after=0&limit=10000`);
  };
  return { running, path: `/chambers/${id}/stream`, quiet };
}

describe('a consumer that resumes by its last id', { timeout: 180_000 }, () => {
  it(`a consumer that resumes gets every line once through ${DISCONNECTS} disconnects`, async () => {
    const lines: string[] = [];
    const { running, path, quiet } = await noisyChamber(lines);
    const random = new Random(1);
    const next = () => consume(running, `${path}?after=${lines.length}`);
    for (let disconnect = 0; disconnect < DISCONNECTS; disconnect++) {
      const consumer = await next();
      await consumer.until(random.below(LINES_MAX));
      lines.push(...consumer.lines);
      dropConnection(consumer, random);
    }
    const stored = await quiet();
    const last = await next();
    await last.until(stored.length - lines.length);
    expect([...lines, ...last.lines]).toEqual(stored);
  });

  it(`a consumer of server-sent events gets every line once through ${SOURCE_DISCONNECTS} disconnects`, async () => {
    const lines: string[] = [];
    const { running, path, quiet } = await noisyChamber(lines);
    const random = new Random(2);
    for (let disconnect = 0; disconnect < SOURCE_DISCONNECTS; disconnect++) {
      const source = await openSource(running, path, { 'last-event-id': String(lines.length) });
      const events = await take(source, 1 + random.below(LINES_MAX));
      expect(events.map(({ id }) => Number(id))).toEqual(events.map((_, index) => lines.length + index + 1));
      lines.push(...events.map(({ data }) => data));
      await source.return(undefined);
    }
    expect(lines).toEqual((await quiet()).slice(0, lines.length));
  });

  it('a consumer of pages gets every line once, whatever their size', async () => {
    const lines: string[] = [];
    const { running, path, quiet } = await noisyChamber(lines);
    const random = new Random(3);
    const events = path.replace('/stream', '/events');
    while (lines.length < 500) {
      lines.push(...(await page(running, `${events}?after=${lines.length}&limit=${1 + random.below(50)}`)));
    }
    expect(lines).toEqual((await quiet()).slice(0, lines.length));
  });
});

/** Ends the connection with a close frame, without one, or with a reset. */
function dropConnection({ socket }: Consumer, random: Random): void {
  const how = random.below(3);
  if (how === 0) socket.close();
  else if (how === 1) socket.terminate();
  else rawSocketOf(socket).resetAndDestroy();
}

/** Returns the TCP socket, because ws can't reset a connection. */
function rawSocketOf(socket: Consumer['socket']): Socket {
  return (socket as unknown as { readonly _socket: Socket })._socket;
}
