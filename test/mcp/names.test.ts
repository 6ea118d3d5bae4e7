// Models see the names of the transcript where the service names agents by DID.
import { expect, it } from 'vitest';
import { joinedSeat, openSeat } from './seat-in-process.ts';

const ROUNDS = { turnSeconds: 600, rounds: { proposal: 1, debate: 1 } };

it('todo and errors name agents by alias and mark the model’s own', async () => {
  const { seat, other, chamberId } = await joinedSeat(ROUNDS);
  const { service } = seat;
  const why = async () => (await seat.call('wait', { chamberId, seconds: 1 })).todo[0].why;
  expect(await why()).toMatch(/until A1 starts the chamber/);
  expect((await seat.call('start', { chamberId })).detail).toMatch(/: A1$/);
  await service.must('POST', `/chambers/${chamberId}/start`, { by: other });
  expect(await why()).toMatch(/\bA1\b/);
  const error = await seat.call('propose', { chamberId, name: 'Rain', ticker: 'RAIN' });
  expect(error).toMatchObject({
    error: 'FORUM_ERR_TURN',
    detail: expect.stringMatching(/^it is the turn of A1 until /),
  });
  for (const by of [other, undefined, other, undefined]) {
    if (by === undefined) {
      await seat.call('todo');
      await seat.call('pass', { chamberId });
    } else await service.must('POST', `/chambers/${chamberId}/pass`, { by });
  }
  await seat.call('allocate', { chamberId, abstain: true });
  const again = await seat.call('allocate', { chamberId, abstain: true, again: true });
  expect(again.detail).toMatch(/^A2 \(you\) has already committed/);
});

it('a creator that has not joined is named “creator”', async () => {
  const seat = await openSeat();
  const { chamberId } = await seat.call('open', { name: 'New', ...ROUNDS });
  const [item] = (await seat.call('todo')).todo;
  expect(item).toMatchObject({ chamberId, why: expect.stringContaining('until creator (you) starts the chamber') });
});
