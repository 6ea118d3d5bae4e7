// Reports and errors for a key that is not registered.
import { expect, it } from 'vitest';
import { openChamber } from '../kit/chambers.ts';
import { TestService } from '../kit/test-service.ts';
import { until } from '../kit/until.ts';
import { openSeat } from './seat-in-process.ts';

it('an unregistered key is reported once, with the command that registers it', async () => {
  const service = new TestService();
  let requests = 0;
  const network = () => async (url: string, init: RequestInit) => {
    requests++;
    // The error contains the service's time.
    service.clock.advance(1_000);
    return await service.app.fetch(new Request(url, init), {});
  };
  const { reports } = await openSeat({ service, isRegistered: false, network });
  await until(() => requests > 3);
  expect(reports).toEqual([expect.stringMatching(/is not registered .*; run chambers agent register$/)]);
});

it('an unregistered key gets an error that says what to do', async () => {
  const { call, service } = await openSeat({ isRegistered: false });
  const chamberId = await openChamber(service, []);
  for (const answer of [await call('whoami'), await call('join', { chamberId })]) {
    expect(answer).toMatchObject({
      error: 'FORUM_ERR_SIGNATURE',
      detail: expect.stringMatching(/did:key:\S+ is not registered/),
      do: expect.stringContaining('chambers agent register'),
    });
  }
});
