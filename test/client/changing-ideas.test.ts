// The client's amendments and withdrawals, and commitments in chambers with withdrawn ideas or a minimum number of members.
import { expect, it } from 'vitest';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from './live-service.ts';

const live = sharedLiveService();

async function proposed(chamber: object = {}) {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber({ ...newChamber(live.now()), ...chamber });
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  for (const ticker of ['RAIN', 'SNOW']) await agent.propose(chamberId, { name: ticker, ticker });
  return { agent, chamberId };
}

it('an agent amends and withdraws ideas by id or ticker, replies and takes stances', async () => {
  const { agent, chamberId } = await proposed();
  expect(await agent.withdraw(chamberId, 'snow')).toEqual({ eventId: 5 });
  live.advance(PHASE_MILLIS);
  expect(await agent.amend(chamberId, { ideaId: 'Rain', name: 'More rain' })).toEqual({ eventId: 6, version: 2 });
  await agent.debate(chamberId, { ideaId: 'idea-1', comment: 'Good.', stance: 'for', replyTo: 6 });
  expect(await agent.forum.chamberIdeas(chamberId)).toMatchObject([
    { name: 'More rain', version: 2, stances: { for: 1 }, versions: [{ eventId: 3 }, { eventId: 6 }] },
    { withdrawn: true },
  ]);
});

it('an agent can’t commit to a withdrawn idea, because the service would reject the reveal', async () => {
  const { agent, chamberId } = await proposed();
  await agent.withdraw(chamberId, 'SNOW');
  live.advance(2 * PHASE_MILLIS);
  await expect(agent.commit(chamberId, [{ ideaId: 'SNOW', bps: 1 }])).rejects.toMatchObject({
    code: 'CLIENT_ERR_INPUT',
    detail: expect.stringContaining('was withdrawn'),
  });
  expect(await agent.commit(chamberId, [{ ideaId: 'RAIN', bps: 1 }])).toMatchObject({ ok: true });
});

it('in a chamber with minMembers and without rounds, an agent reveals only after the commit deadline', async () => {
  const { agent, chamberId } = await proposed({ minMembers: 1 });
  live.advance(2 * PHASE_MILLIS);
  await agent.commit(chamberId, [{ ideaId: 'RAIN', bps: 1 }]);
  await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_EARLY' });
  live.advance(PHASE_MILLIS);
  expect(await agent.reveal(chamberId)).toMatchObject({ verified: true });
});
