// A consumer that loses its connection a thousand times while the log grows: no gap, no repeat, no reordering.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Consumer, consume, openSource, page, take } from '../kit/consumers.ts';
import { appendDebates } from '../kit/debates.ts';
import { Random } from '../kit/random.ts';
import { runDebating } from '../kit/service.ts';
import { IS_ON_POSTGRES } from '../kit/store.ts';

/** A read over a connection takes longer than one of a file. */
const DISCONNECTS = IS_ON_POSTGRES ? 200 : 1_000;
const SOURCE_DISCONNECTS = 100;
const LINES_MAX = 6;

/** The debate may be this many lines ahead of its consumer, which so meets history, live lines and the passage between them. */
const LEAD_MAX = 60;

/** A chamber with a debate that runs until `quiet` is called, little ahead of the lines that were received. */
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
  it(`gets every line once through ${DISCONNECTS} disconnects`, async () => {
    const lines: string[] = [];
    const { running, path, quiet } = await noisyChamber(lines);
    const random = new Random(1);
    const next = () => consume(running, `${path}?after=${lines.length}`);
    for (let disconnect = 0; disconnect < DISCONNECTS; disconnect++) {
      const consumer = await next();
      await consumer.until(random.below(LINES_MAX));
      lines.push(...consumer.lines);
      breakOff(consumer, random);
    }
    const stored = await quiet();
    const last = await next();
    await last.until(stored.length - lines.length);
    expect([...lines, ...last.lines]).toEqual(stored);
  });

  it(`gets every line once as server-sent events through ${SOURCE_DISCONNECTS} disconnects`, async () => {
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

  it('gets every line once in pages of any size', async () => {
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

/** Ends it by a close frame, by the end of the connection, or by a reset. */
function breakOff({ socket }: Consumer, random: Random): void {
  const how = random.below(3);
  if (how === 0) socket.close();
  else if (how === 1) socket.terminate();
  else rawSocketOf(socket).resetAndDestroy();
}

/** ws has no way to reset a connection. */
function rawSocketOf(socket: Consumer['socket']): Socket {
  return (socket as unknown as { readonly _socket: Socket })._socket;
}
