// `read` with byIdea: the comments for, against and about each idea, in parts that fit.
import { expect, it } from 'vitest';
import { enterPhase } from '../kit/chambers.ts';
import { joinedSeat } from './seat-in-process.ts';

const COMMENTS = 40;

async function debated() {
  const { seat, other, chamberId } = await joinedSeat();
  const { service } = seat;
  await enterPhase(service, chamberId, 'PROPOSAL');
  for (const ticker of ['RAIN', 'SNOW']) {
    const body = { name: ticker.toLowerCase(), ticker, description: `It will ${ticker.toLowerCase()}.` };
    await service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body });
  }
  await enterPhase(service, chamberId, 'DEBATE');
  await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
  return { seat, service, other, chamberId };
}

it('read with byIdea groups the comments for, against and about each idea, and separately the comments on the whole debate', async () => {
  const { seat, chamberId } = await debated();
  const say = (comment: string, more: object = {}) => seat.call('debate', { chamberId, comment, ...more });
  await say('Yes.', { ideaId: 'RAIN', stance: 'for', refinement: { budget: 'half' } });
  await say('No.', { ideaId: 'rain', stance: 'against' });
  await say('Why?', { ideaId: 'idea-1' });
  await say('Another one.', { ideaId: 'SNOW', refinement: { stance: 'perhaps' } });
  await say('Costs come first.');
  const { byIdea, next, more } = await seat.call('read', { chamberId, byIdea: true });
  expect(byIdea).toEqual([
    {
      ideaId: 'idea-1',
      ticker: 'RAIN',
      by: 'A1',
      proposal: ['rain', 'It will rain.'],
      for: [{ by: 'A2', eventId: 7, text: 'Yes.', refinement: '{"budget":"half"}' }],
      against: [{ by: 'A2', eventId: 8, text: 'No.' }],
      comments: [{ by: 'A2', eventId: 9, text: 'Why?' }],
    },
    {
      ideaId: 'idea-2',
      ticker: 'SNOW',
      by: 'A1',
      proposal: ['snow', 'It will snow.'],
      comments: [{ by: 'A2', eventId: 10, text: 'Another one.', refinement: '{"stance":"perhaps"}' }],
    },
    { ideaId: null, comments: [{ by: 'A2', eventId: 11, text: 'Costs come first.' }] },
  ]);
  expect([next, more]).toEqual([11, false]);
});

it('read with byIdea returns parts of at most maxBytes that together contain every comment once', async () => {
  const { seat, service, chamberId } = await debated();
  const by = { ideaId: 'idea-1', stance: 'for' };
  for (let n = 0; n < COMMENTS; n++)
    await seat.call('debate', { chamberId, comment: `${n} ${'界'.repeat(100)}`, ...by });
  const said: number[] = [];
  let parts = 0;
  for (let after = 0, more = true; more; parts++) {
    const result = await seat.call('read', { chamberId, byIdea: true, after, maxBytes: 4_000 });
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(4_000);
    const comments = result.byIdea.flatMap((idea: { for?: { eventId: number }[] }) => idea.for ?? []);
    said.push(...comments.map(({ eventId }: { eventId: number }) => eventId));
    ({ next: after, more } = result);
  }
  const events = await service.events(chamberId);
  const debates = events.filter(({ type }) => type === 'chamber.debated').map(({ eventId }) => eventId);
  expect(debates).toHaveLength(COMMENTS);
  expect(said).toEqual(debates);
  expect(parts).toBeGreaterThan(3);
});

it('read with byIdea nests replies under the comments that they answer, and shows the changes of amendments and stances of earlier releases', async () => {
  const { seat, service, other: by, chamberId } = await debated();
  const say = (comment: string, more: object = {}) => seat.call('debate', { chamberId, comment, ...more });
  await say('Why?', { ideaId: 'RAIN' });
  await say('Because.', { ideaId: 'RAIN', stance: 'for', replyTo: 7 });
  await say('As agents did before.', { ideaId: 'RAIN', refinement: { stance: 'against' } });
  await seat.call('pass', { chamberId });
  await service.must('POST', `/chambers/${chamberId}/amend`, { by, body: { ideaId: 'idea-1', name: 'More rain' } });
  await service.must('POST', `/chambers/${chamberId}/withdraw`, { by, body: { ideaId: 'idea-2' } });
  const { byIdea } = await seat.call('read', { chamberId, byIdea: true });
  expect(byIdea[0]).toMatchObject({
    comments: [{ eventId: 7, replies: [{ eventId: 8, text: 'Because.', stance: 'for' }] }],
    against: [{ eventId: 9 }],
    amended: [{ eventId: 11, text: 'amends RAIN (version 2): name', words: ['More rain'] }],
  });
  expect(byIdea[1]).toMatchObject({ ticker: 'SNOW', withdrawn: true });
});
