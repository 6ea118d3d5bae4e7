// The last millisecond in which an idea may be withdrawn or amended.
import { expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { refusal, TestService } from '../kit/test-service.ts';

it.each([
  ['withdraw', { ideaId: 'idea-1' }],
  ['amend', { ideaId: 'idea-1', name: 'Better' }],
])('%s is accepted up to the last millisecond of DEBATE, and rejected in the next', async (path, body) => {
  for (const [at, expected] of [
    [-1, { status: 200 }],
    [0, refusal(403, 'FORUM_ERR_PHASE')],
  ] as const) {
    const service = new TestService();
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    await enterPhase(service, id, 'PROPOSAL');
    await service.must('POST', `/chambers/${id}/propose`, { by, body: { name: 'One', ticker: 'ONE' } });
    service.clock.advance(2 * HOUR + at);
    expect(await service.request('POST', `/chambers/${id}/${path}`, { by, body })).toMatchObject(expected);
  }
});
