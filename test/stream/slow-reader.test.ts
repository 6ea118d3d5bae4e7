// A consumer that reads slowly, or not at all for a while, loses nothing and holds up nobody.
import { expect, it } from 'vitest';
import { consume } from '../kit/consumers.ts';
import { call, debating, run } from '../kit/service.ts';

const EVENTS = 200;
/** Some 120 KB a line: together far more than the buffers of two sockets hold. */
const BULK = { bulk: 'x'.repeat(60_000) };

it('is given everything once it reads on, while others are not kept waiting', async () => {
  const running = await run();
  const { id, by } = await debating(running);
  const slow = await consume(running, `/chambers/${id}/stream`);
  const quick = await consume(running, `/chambers/${id}/stream`);
  slow.socket.pause();
  for (let at = 0; at < EVENTS; at++) {
    await call(running, by, ['POST', `/chambers/${id}/debate`, { comment: `${at}`, refinement: BULK }]);
  }
  await quick.until(EVENTS);
  expect(slow.lines).toEqual([]);
  slow.socket.resume();
  await slow.until(EVENTS);
  expect(slow.lines).toEqual(quick.lines);
  expect(slow.eventIds).toEqual(Array.from({ length: EVENTS }, (_, at) => at + 3));
});
