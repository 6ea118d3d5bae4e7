import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from '../client/live-service.ts';
import { fetchWithoutDate } from '../kit/fetch-without-date.ts';
import { eventually } from '../kit/until.ts';
import { run } from './run.ts';

const live = sharedLiveService();

// The command line runs in this process with the live service's clock; a wait reads this clock again at least every 30 s.
beforeEach(() => {
  vi.spyOn(Date, 'now').mockImplementation(() => live.now());
  vi.stubGlobal('fetch', fetchWithoutDate);
});

it('chamber wait waits for a phase, and reports a phase that is over', async () => {
  const chambers = (words: string) =>
    run(words.split(' '), { CHAMBERS_URL: live.baseUrl, CHAMBERS_KEY_FILE: join(live.folder, 'ada.json') });
  const creator = await newAgent(live);
  const { chamberId } = await creator.createChamber(newChamber(live.now()));
  expect((await chambers(`chamber wait ${chamberId} lobby`)).exitCode).toBe(0);
  const waiting = chambers(`chamber wait ${chamberId} proposal`);
  await eventually(() => expect(console.error).toHaveBeenCalled());
  live.advance(PHASE_MILLIS);
  const { out, err } = await waiting;
  expect(err).toMatch(/^waiting for PROPOSAL: chamber \d+ is in LOBBY until 20[^\n]*Z at the latest$/);
  expect(out).toMatch(/PROPOSAL/);
  const over = await chambers(`chamber wait ${chamberId} lobby`);
  expect(over).toMatchObject({ exitCode: 5, err: expect.stringContaining('LOBBY is over') });
});
