// GET /chambers/:id/ideas of a chamber with megabytes of text.
import { expect, it } from 'vitest';
import { deadlinesFrom } from '../kit/chambers.ts';
import { buffersHeld } from '../kit/memory-held.ts';
import { call, newAgent, run } from '../kit/service.ts';

const IDEAS = 128;
const DESCRIPTION = '語'.repeat(8_192);

it('the service lists all ideas of a full chamber, and keeps none of their texts in memory', async () => {
  const running = await run();
  const by = await newAgent(running);
  const chamber = { name: 'Full', ...deadlinesFrom(running.clock.read()) };
  const { chamberId } = await call(running, by, ['POST', '/chambers', chamber]);
  await call(running, by, ['POST', `/chambers/${chamberId}/join`]);
  running.clock.set(Date.parse(chamber.lobbyDeadline));
  for (let slot = 1; slot <= IDEAS; slot++) {
    const idea = { name: `Idea ${slot}`, ticker: `T${slot}`, description: DESCRIPTION };
    await call(running, by, ['POST', `/chambers/${chamberId}/propose`, idea]);
  }
  const read = async () => {
    const response = await fetch(`${running.url}/chambers/${chamberId}/ideas`);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const ideas = (await response.json()) as { slot: number; ticker: string; description: string }[];
    expect(ideas.map(({ slot, ticker }) => `${slot} ${ticker}`)).toEqual(
      Array.from({ length: IDEAS }, (_, index) => `${index + 1} T${index + 1}`),
    );
    expect(new Set(ideas.map(({ description }) => description))).toEqual(new Set([DESCRIPTION]));
  };
  const before = await buffersHeld();
  await read();
  const held = (await buffersHeld()) - before;
  expect(held).toBeLessThan(1_000_000);
});
