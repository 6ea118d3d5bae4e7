// The tools that change an agent's own ideas, and how changed ideas are shown.
import { expect, it } from 'vitest';
import { enterPhase } from '../kit/chambers.ts';
import { joinedSeat, openSeat } from './seat-in-process.ts';

async function proposed() {
  const { seat, other, chamberId } = await joinedSeat();
  const { service } = seat;
  await enterPhase(service, chamberId, 'PROPOSAL');
  const body = { name: 'Sun', ticker: 'SUN' };
  await service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body });
  await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
  await seat.call('propose', { chamberId, name: 'Rain', ticker: 'RAIN' });
  await seat.call('propose', { chamberId, name: 'More rain', ticker: 'RAIN2' });
  return { seat, service, other, chamberId };
}

async function inDebate() {
  const played = await proposed();
  const { service, other, chamberId } = played;
  await enterPhase(service, chamberId, 'DEBATE');
  await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
  return played;
}

it('amend changes an idea named by its ticker, and ends the turn', async () => {
  const { seat, service, chamberId } = await inDebate();
  const amended = { chamberId, ideaId: 'rain', description: 'Wet.', pass: true };
  const first = await seat.call('amend', amended);
  expect(first).toMatchObject({ version: 2, passed: true });
  expect(await seat.call('amend', amended)).toMatchObject({ ...first, repeated: true });
  expect((await service.must('GET', '/ideas/RAIN')).description).toBe('Wet.');
  const { ideas } = await seat.call('read', { chamberId });
  expect(ideas).toMatchObject([{ ticker: 'SUN' }, { ticker: 'RAIN', version: 2 }, { ticker: 'RAIN2' }]);
});

it('amend says what to do if the idea belongs to another agent, does not exist or already has the text', async () => {
  const { seat, chamberId } = await inDebate();
  const amend = (args: object) => seat.call('amend', { chamberId, ...args });
  expect(await amend({ ideaId: 'SUN', name: 'Moon' })).toMatchObject({ error: 'FORUM_ERR_FORBIDDEN' });
  expect(await amend({ ideaId: 'MOON', name: 'Moon' })).toMatchObject({ error: 'CLIENT_ERR_INPUT' });
  expect(await amend({ ideaId: 'RAIN', name: 'Rain' })).toMatchObject({ error: 'FORUM_ERR_CONFLICT' });
  expect(await amend({ ideaId: 'RAIN' })).toMatchObject({ error: 'FORUM_ERR_VALIDATION' });
});

it('withdraw withdraws an idea, which then can be neither proposed again nor backed', async () => {
  const { seat, service, chamberId } = await proposed();
  expect(await seat.call('withdraw', { chamberId, ideaId: 'RAIN2' })).toMatchObject({ passed: false });
  expect(await seat.call('propose', { chamberId, name: 'More rain', ticker: 'RAIN2', again: true })).toMatchObject({
    error: 'FORUM_ERR_CONFLICT',
    detail: expect.stringContaining('which you have withdrawn'),
  });
  expect((await seat.call('read', { chamberId })).ideas[2]).toMatchObject({ ticker: 'RAIN2', withdrawn: true });
  await enterPhase(service, chamberId, 'ALLOCATE_COMMIT');
  expect(await seat.call('allocate', { chamberId, allocations: [{ ideaId: 'RAIN2', bps: 1 }] })).toMatchObject({
    error: 'CLIENT_ERR_INPUT',
    detail: expect.stringContaining('was withdrawn'),
  });
  expect(await seat.call('allocate', { chamberId, allocations: [{ ideaId: 'RAIN', bps: 1 }] })).toMatchObject({
    ok: true,
  });
});

it('debate replies to an event, with a stance that the straw poll counts', async () => {
  const { seat, service, chamberId } = await inDebate();
  const said = { chamberId, comment: 'Bright.', ideaId: 'SUN', stance: 'undecided', replyTo: 4 };
  const { eventId } = await seat.call('debate', said);
  const { payload } = JSON.parse((await service.lines(chamberId))[eventId - 1] ?? '');
  expect(payload).toMatchObject({ ideaId: 'idea-1', stance: 'undecided', version: 1, replyTo: 4, refinement: null });
  expect((await service.must('GET', '/ideas/SUN')).stances).toMatchObject({ undecided: 1 });
  expect(await seat.call('debate', { ...said, replyTo: 1 })).toMatchObject({
    error: 'FORUM_ERR_NOT_FOUND',
    do: 'take ideaId and eventId from read',
  });
});

it('open creates a chamber with a minimum number of members, which todo shows in LOBBY', async () => {
  const seat = await openSeat();
  const { chamberId } = await seat.call('open', { name: 'Company', minMembers: 2 });
  await seat.call('join', { chamberId });
  const { todo } = await seat.call('todo');
  expect(todo).toMatchObject([{ chamberId, memberCount: 1, minMembers: 2, may: [] }]);
  expect(await seat.call('read', { chamberId })).toMatchObject({ minMembers: 2 });
  expect(await seat.call('start', { chamberId })).toMatchObject({
    error: 'FORUM_ERR_CONFLICT',
    when: 'with minMembers',
  });
});
