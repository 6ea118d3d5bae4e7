// Agents act while an honest service is audited.
import { expect, test } from 'vitest';
import { auditService } from '../../src/audit/audit.ts';
import { Agent } from '../../src/client/index.ts';
import { newChamber, openLiveService, REGISTRATION } from '../client/live-service.ts';
import { serve } from '../kit/serve.ts';
import { atEnd } from '../kit/temporary.ts';

test('the auditor reads the new lines of an account that grows between two chambers', { timeout: 60_000 }, async () => {
  const live = await openLiveService();
  atEnd(live.stop);
  const ann = Agent.generate(live.forum);
  await ann.register(REGISTRATION);
  for (const chamberId of [1, 2]) await ann.createChamber({ ...newChamber(live.now()), name: `Chamber ${chamberId}` });
  let isChanged = false;
  const url = await serve(async ({ url: path = '' }, response) => {
    if (path.startsWith('/chambers/2/events') && !isChanged) {
      isChanged = true;
      await ann.changePersonality({ style: 'dry' });
      await ann.joinChamber(2);
    }
    const answer = await fetch(live.baseUrl + path);
    const headers = ['log-id', 'date', 'content-type'].map((name) => [name, answer.headers.get(name) ?? ''] as const);
    response.writeHead(answer.status, Object.fromEntries(headers.filter(([, value]) => value !== '')));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  const { problems, chambers } = await auditService(url, {});
  expect(isChanged).toBe(true);
  expect(problems).toEqual([]);
  expect(chambers.map(({ lines, sentence }) => [lines, sentence])).toEqual([
    [1, 'Sound.'],
    [2, 'Sound.'],
  ]);
});
