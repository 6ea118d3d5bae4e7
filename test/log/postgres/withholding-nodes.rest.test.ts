// One of three nodes withholds texts while all of them serve readers and moves. No response holds a text that was withheld before
// its request: at once on the withholding node, within seconds on the others. And no row ever holds it afterwards.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { faultsOf } from '../../durability/log-book.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { debated, SECRET, stubsOf } from '../withheld.ts';
import { remains } from './withheld-bytes.ts';

const CHAMBERS = 5;
/** A wake-up takes milliseconds; a node that misses it polls once a second. */
const NOTICED_MS_MAX = 2_000;
const READ_MS = 3_000;

it(`no node serves or restores a text ${NOTICED_MS_MAX} ms after it was withheld`, {
  timeout: 120_000,
}, async () => {
  for (let chamber = 0; chamber < CHAMBERS; chamber++) {
    const url = await temporaryPostgres();
    const written = await debated(await openStore(url));
    const { service, chamberId, members, events } = written;
    const { clock } = service;
    const others = [
      new TestService({ store: await openStore(url), clock }),
      new TestService({ store: await openStore(url), clock }),
    ];
    let withheldAt = Number.POSITIVE_INFINITY;
    let isOver = false;
    const late: string[] = [];
    const read = async (node: TestService, allowedMillis: number) => {
      const paths = ['', '/ideas', '/events', '/transcript'].map((path) => `/chambers/${chamberId}${path}`);
      for (let at = 0; !isOver; at++) {
        const path = paths[at % paths.length] ?? '';
        const requestedAt = performance.now();
        const text = await (await node.app.request(path, {}, {})).text();
        if (text.includes(SECRET) && requestedAt > withheldAt + allowedMillis) late.push(path);
        await sleep(1);
      }
    };
    const move = async (node: TestService, index: number) => {
      for (let count = 0; !isOver; count++) {
        const body = { ideaId: 'idea-1', comment: `hm ${index} ${count}`, stance: 'for' };
        await node.request('POST', `/chambers/${chamberId}/debate`, { by: members[0], body });
        await sleep(10);
      }
    };
    const readers = [read(service, 0), ...others.map((node) => read(node, NOTICED_MS_MAX))];
    const movers = others.map(move);
    await sleep(100 + Math.random() * 400);
    await service.store.withholding.withhold(await stubsOf(service.store, events));
    withheldAt = performance.now();
    await sleep(READ_MS);
    isOver = true;
    await Promise.all([...readers, ...movers]);
    expect(late).toEqual([]);
    for (const node of [service, ...others]) await node.close();
    expect(await remains(url)).toBe(false);
    expect(await faultsOf(url)).toEqual([]);
  }
});

it('a node without a response from its database for 5 s drops its caches', async () => {
  const url = await temporaryPostgres();
  const store = await openStore(url);
  const announced: unknown[] = [];
  store.withholding.onWithheld((streams) => void announced.push(streams));
  await execute(url, 'ALTER TABLE withheld RENAME TO out_of_reach');
  await eventually(() => expect(announced).toEqual([null]), 20_000);
  await execute(url, 'ALTER TABLE out_of_reach RENAME TO withheld');
});
