// Tests the withholding of a line while readers follow its chamber's stream.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { consume } from '../kit/consumers.ts';
import { debating, run } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';

it('readers with notes are notified once, no reader misses a line or gets it twice, and a resumed stream has the stub', async () => {
  const list = join(temporaryFolder(), 'withhold');
  writeFileSync(list, '');
  const running = await run({ WITHHOLD_FILE: list });
  const { debate } = await debating(running);
  const eventId = await debate('secret');
  const path = '/chambers/1/stream?after=0';
  const [noted, plain] = [await consume(running, `${path}&notes=1`), await consume(running, path)];
  await noted.until(eventId + 1);
  writeFileSync(list, `1:${eventId} law\n`);
  running.service.reloadLists();
  await noted.until(eventId + 2);
  expect(JSON.parse(noted.lines.at(-1) ?? '')).toEqual({ note: 'withheld', eventId });
  const next = await debate('plain');
  for (const [consumer, notes] of [
    [noted, 2],
    [plain, 0],
  ] as const) {
    await consumer.until(next + notes);
    const lines = consumer.lines.filter((line) => !line.startsWith('{"note"'));
    expect(lines.map((line) => JSON.parse(line).eventId)).toEqual(Array.from({ length: next }, (_, at) => at + 1));
    expect(lines[eventId - 1]).toContain('"comment":"secret"');
  }
  const resumed = await consume(running, `/chambers/1/stream?after=${eventId - 1}&notes=1`);
  await resumed.until(3);
  const [stub, following, note] = resumed.lines.map((line) => JSON.parse(line));
  expect(stub).toMatchObject({ eventId, payload: { comment: '[withheld]' }, withheld: { reason: 'law' } });
  expect([following.eventId, note]).toEqual([next, expect.objectContaining({ note: 'caught-up', eventId: next })]);
});
