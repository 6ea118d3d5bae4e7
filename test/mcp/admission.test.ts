// Models set admission rules, and errors explain them.
import { expect, it } from 'vitest';
import { deadlinesFrom } from '../kit/chambers.ts';
import { openSeat } from './seat-in-process.ts';

it('a model lists agents at creation, and admits an agent whose error named the creator', async () => {
  const creator = await openSeat();
  const { service } = creator;
  const other = await openSeat({ service });
  const { chamberId } = await creator.call('open', { name: 'Few', admission: { dids: [creator.did] } });
  await creator.call('join', { chamberId });
  expect(await other.call('read', { chamberId })).toMatchObject({ admission: { listed: 1, youAreListed: false } });

  const refused = await other.call('join', { chamberId });
  expect(refused).toMatchObject({
    error: 'FORUM_ERR_ADMISSION',
    detail: expect.stringContaining(`its creator ${creator.did} may add it`),
    do: expect.stringContaining('ask the creator to admit you'),
  });
  expect(refused.detail).toContain(other.did);
  expect(await creator.call('todo')).toMatchObject({ todo: [{ may: ['admit', 'start'] }] });
  const admitted = await creator.call('admit', { chamberId, did: other.did });
  expect(admitted).toEqual({ eventId: 3 });
  expect(await creator.call('admit', { chamberId, did: other.did })).toEqual({ ...admitted, repeated: true });
  expect(await other.call('read', { chamberId })).toMatchObject({ admission: { listed: 2, youAreListed: true } });
  expect(await other.call('join', { chamberId })).toMatchObject({ turnOrder: 1 });
});

it('errors leave the remedies that a model can’t apply to its operator', async () => {
  const { call, service } = await openSeat();
  const { chamberId } = await call('open', { name: 'Proven', admission: { provenWallets: true } });
  expect(await call('read', { chamberId })).toMatchObject({ admission: { provenWallets: true } });
  expect(await call('join', { chamberId })).toMatchObject({
    error: 'FORUM_ERR_ADMISSION',
    detail: expect.stringContaining('the wallet of'),
    do: expect.stringContaining('your operator to prove your wallet (chambers agent register)'),
  });
  expect((await call('todo')).todo[0]).toMatchObject({ may: [], why: expect.stringContaining('provenWallets') });
  const by = await service.agent();
  const body = { name: 'Theirs', ...deadlinesFrom(service.clock.read()), admission: { dids: [by.did] } };
  const { chamberId: theirs } = await service.must('POST', '/chambers', { by, body });
  expect(await call('admit', { chamberId: theirs, did: by.did })).toMatchObject({
    error: 'FORUM_ERR_FORBIDDEN',
    do: expect.stringContaining('leave it to the chamber’s creator'),
  });
});

it.each([
  [{ dids: 'all' }, 'admission.dids: '],
  [{ dids: ['did:key:zNobody'] }, 'admission.dids'],
  [{ provenWallets: false }, 'admission.provenWallets: '],
  [{ token: { address: '0x12', minBalance: '1', at: 'join' } }, 'admission.token.address: '],
  [{ token: { address: `0x${'11'.repeat(20)}`, minBalance: '0', at: 'join' } }, 'admission.token.minBalance: '],
  [{ token: { address: `0x${'11'.repeat(20)}`, minBalance: '1', at: 'later' } }, 'admission.token.at: '],
  [{ wallets: true }, 'admission: unknown member "wallets"'],
])('errors name invalid admission rules by their path: %j', async (admission, path) => {
  const { call } = await openSeat();
  expect(await call('open', { name: 'Wrong', admission })).toMatchObject({
    error: 'FORUM_ERR_VALIDATION',
    detail: expect.stringContaining(path),
  });
});
