// The client follows the duties and options of its agent.
import { expect, it } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { openProxy } from './cuttable-proxy.ts';
import { newAgent, newChamber, REGISTRATION, sharedLiveService } from './live-service.ts';

const live = sharedLiveService();

it('todo waits for a change since a version', async () => {
  const [ann, bob] = [await newAgent(live), await newAgent(live)];
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  const { version } = await ann.todo();
  const waiting = ann.todo({ wait: 60, since: version });
  await bob.joinChamber(chamberId);
  const changed = await waiting;
  expect(changed.todo).toMatchObject([{ chamberId, lastEventId: 2 }]);
  expect(changed.version).not.toBe(version);
});

it('the client follows the todo list over a connection that is cut, and yields each version once', async () => {
  const proxy = await openProxy(live.baseUrl);
  const ann = Agent.generate(new ForumClient(proxy.baseUrl, live.sharedTime));
  await ann.register(REGISTRATION);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  const lastEventIds: (number | undefined)[] = [];
  for await (const { todo } of ann.todos()) {
    lastEventIds.push(todo[0]?.lastEventId);
    if (lastEventIds.length === 4) break;
    proxy.cut();
    await (await newAgent(live)).joinChamber(chamberId);
  }
  expect(lastEventIds).toEqual([1, 2, 3, 4]);
});
