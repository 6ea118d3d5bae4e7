// Wake-ups between nodes: after every append, even to many streams, and also after a lost notification.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ALL_CHAMBERS } from '../../../src/log/log.ts';
import { Connections } from '../../../src/log/postgres/connections.ts';
import { NotificationChannel } from '../../../src/log/postgres/listen-notify.ts';
import type { StreamId } from '../../../src/log/stream-id.ts';
import { connect, endWakeUps, execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { atEnd } from '../../kit/temporary.ts';
import { eventually } from '../../kit/until.ts';
import { entry } from '../entries.ts';

const QUIET_MS = 500;

async function openNodes(followed: readonly StreamId[]) {
  const url = await temporaryPostgres();
  const [writer, reader] = [await openStore(url), await openStore(url)];
  const woken: StreamId[] = [];
  writer.nodes.onGrowth({ followed: () => [], wake: () => {} });
  reader.nodes.onGrowth({
    followed: () => followed,
    wake: (stream) => void (stream !== ALL_CHAMBERS && woken.push(stream)),
  });
  await eventually(() => expect(reader.nodes.state().isListening).toBe(true), 60_000);
  // Any stream may have grown before the node listened.
  expect(woken).toEqual(expect.arrayContaining([...followed]));
  // Greetings between the nodes wake all followers; they are over once no follower has been woken for a while.
  for (let before = -1; before < woken.length; ) {
    before = woken.length;
    await sleep(QUIET_MS);
  }
  woken.length = 0;
  return { url, writer, reader, woken };
}

it('a node sends no notifications until another node appears, which then checks every stream that it follows', async () => {
  const url = await temporaryPostgres();
  const store = await openStore(url);
  const outsider = await connect(url);
  const heard: string[] = [];
  outsider.on('notification', ({ payload = '' }) => void heard.push(payload));
  await outsider.query(`LISTEN chambers_${store.log.logId}`);
  store.nodes.onGrowth({ followed: () => [], wake: () => {} });
  await eventually(() => expect(heard).toEqual(['?']), 60_000);
  await store.log.append({ entries: [entry(1, 1)] });
  await outsider.query(`NOTIFY chambers_${store.log.logId}, '?'`);
  await eventually(() => expect(heard.filter((payload) => payload !== '?')).toEqual(['']), 60_000);
  await store.log.append({ entries: [entry(1, 2)] });
  await eventually(() => expect(heard.at(-1)).toBe('1'), 60_000);
});

it('a node replaces a connection whose notification failed', async () => {
  const connections = new Connections(await temporaryPostgres(), 1);
  atEnd(() => connections.close());
  let opened = 0;
  let ended = 0;
  const connect = async () => {
    const client = await connections.connect();
    opened++;
    return client.once('end', () => ended++);
  };
  // PostgreSQL rejects a notification on a channel with so long a name, but listens on the truncated name.
  const growth = new NotificationChannel({
    connect,
    channel: 'x'.repeat(64),
    heads: async () => new Map(),
    onWithheld: () => {},
  });
  atEnd(() => growth.close());
  growth.follow({ followed: () => [], wake: () => {} });
  await eventually(() => expect([opened, ended, growth.reconnects]).toEqual([2, 2, 2]), 20_000);
});

describe('wake-ups of another node', () => {
  it('another node is notified of the streams that have grown and of their chambers’ agents', async () => {
    const { writer, woken } = await openNodes([]);
    const member = {
      kind: 'member',
      chamberId: 1,
      did: 'did:key:zBob',
      turnOrder: 0,
      hasCommitted: false,
      hasRevealed: false,
    } as const;
    await writer.log.append({ entries: [entry(1, 1, { listings: [member] }), entry('did:key:zAnn', 1)] });
    await eventually(() => expect(woken).toEqual([1, 'did:key:zAnn', 'did:key:zBob']), 60_000);
  });

  it('another node checks every stream that it follows if too many have grown for one notification', async () => {
    const { writer, woken } = await openNodes([1, 7]);
    await writer.log.append({ entries: Array.from({ length: 3_000 }, (_, index) => entry(index + 1, 1)) });
    await eventually(() => expect(woken).toEqual([1, 7]), 60_000);
  });

  it('another node listens again after its connections were cut, and learns of growth in between', async () => {
    const { url, writer, woken } = await openNodes([1]);
    await endWakeUps(url);
    await writer.log.append({ entries: [entry(1, 1)] });
    await eventually(() => expect(woken).toContain(1), 60_000);
  });

  it('another node detects growth without a notification', async () => {
    const { url, woken } = await openNodes([1, 2]);
    await execute(url, "INSERT INTO events VALUES ('2', 1, 1, '', NULL, NULL, 0, NULL)");
    await eventually(() => expect(woken).toContain(2), 60_000);
  });

  it('a node is not notified of its own appends', async () => {
    const { writer, reader, woken } = await openNodes([]);
    await writer.log.append({ entries: [entry(1, 1)] });
    await eventually(() => expect(woken).toEqual([1]), 60_000);
    await reader.log.append({ entries: [entry(2, 1)] });
    await writer.log.append({ entries: [entry(3, 1)] });
    await eventually(() => expect(woken).toContain(3), 60_000);
    expect(woken).toEqual([1, 3]);
  });
});
