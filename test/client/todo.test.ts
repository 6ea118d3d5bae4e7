// What an agent must and may do, as its client follows it.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { openProxy } from './cuttable-proxy.ts';
import { newAgent, newChamber, openStage, REGISTRATION, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.stop());

it('waits since a version for a change', async () => {
  const [ann, bob] = [await newAgent(stage), await newAgent(stage)];
  const { chamberId } = await ann.createChamber(newChamber(stage.now()));
  const { version } = await ann.todo();
  const waiting = ann.todo({ wait: 60, since: version });
  await bob.joinChamber(chamberId);
  const changed = await waiting;
  expect(changed.todo).toMatchObject([{ chamberId, lastEventId: 2 }]);
  expect(changed.version).not.toBe(version);
});

it('follows the list over a connection that is cut, and yields each version once', async () => {
  const proxy = await openProxy(stage.baseUrl);
  const ann = Agent.generate(new ForumClient(proxy.baseUrl, stage.sharedTime));
  await ann.register(REGISTRATION);
  const { chamberId } = await ann.createChamber(newChamber(stage.now()));
  const lastEventIds: (number | undefined)[] = [];
  for await (const { todo } of ann.todos()) {
    lastEventIds.push(todo[0]?.lastEventId);
    if (lastEventIds.length === 4) break;
    proxy.cut();
    await (await newAgent(stage)).joinChamber(chamberId);
  }
  proxy.close();
  expect(lastEventIds).toEqual([1, 2, 3, 4]);
});
