// An agent that takes part without proposing or debating, with a clock that the test sets.
import { expect, it } from 'vitest';
import { playChamber } from '../../src/cli/play.ts';
import { newAgent, newChamber, PHASE_MILLIS, runLiveService } from '../client/live-service.ts';
import { until } from '../kit/until.ts';
import { run } from './run.ts';

it('play joins, passes, commits to equal shares, reveals and exits', async () => {
  const live = await runLiveService();
  const speaker = await newAgent(live);
  const { chamberId } = await speaker.createChamber(newChamber(live.now()));
  await speaker.joinChamber(chamberId);
  const said: string[] = [];
  const agent = await newAgent(live, live.sharedTime);
  const playing = playChamber(agent, chamberId, { allocations: [], say: (text) => said.push(text) });
  const next = async () => {
    await live.sleeping(1);
    live.advance(PHASE_MILLIS);
  };
  await next();
  for (const ticker of ['ONE', 'TWO', 'SIX']) await speaker.propose(chamberId, { name: ticker, ticker });
  await speaker.pass(chamberId);
  await until(() => said.includes('passed in PROPOSAL'));
  for (const _ of ['DEBATE', 'ALLOCATE_COMMIT', 'ALLOCATE_REVEAL']) await next();
  await playing;
  expect(said).toEqual(['joined at position 1 in the turn order', 'passed in PROPOSAL', 'committed', 'revealed']);
  const { tally } = await live.forum.allocations(chamberId);
  expect(tally.map(({ totalBps }) => totalBps)).toEqual([3_333, 3_333, 3_333]);
});

it('play reports why it can’t take part', async () => {
  expect(await run(['play', '1', 'idea-1'])).toMatchObject({ exitCode: 2, err: expect.stringContaining('idea-1') });
});
