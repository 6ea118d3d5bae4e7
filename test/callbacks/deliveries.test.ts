// The basic case of a delivery; deliveries.rest.test.ts has the rest.
import { expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { openReceiver } from '../kit/receiver.ts';
import { PUBLIC_URL, withAgent } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';

it('a duty is delivered to a callback that was set after the duty became due, and retried until it arrives', async () => {
  const { service, by } = await withAgent();
  service.composed.calling.start(PUBLIC_URL);
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'PROPOSAL');
  const receiver = await openReceiver();
  receiver.status = 500;
  await service.must('PUT', '/me/callback', { by, body: { url: receiver.url } });
  await eventually(() => expect(receiver.deliveries.length).toBe(1));
  receiver.status = 204;
  await eventually(() => expect(service.composed.calling.state()).toMatchObject({ delivered: 1, failedTries: 1 }));
  const due = { chamberId: id, must: 'pass' };
  expect(receiver.deliveries).toMatchObject([{ body: { did: by.did, due } }, { body: { did: by.did, due } }]);
  const [first, second] = receiver.deliveries.map(({ headers }) => headers['webhook-id']);
  expect(first).toBe(second);
});
