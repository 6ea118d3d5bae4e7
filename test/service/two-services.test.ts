// Two services in one process share nothing: no reader slots, no limits, no metrics, and no lifetime.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { TestClock } from '../kit/clock.ts';
import { debating, newAgent, run } from '../kit/service.ts';

async function runTwo(settings: Readonly<Record<string, string>> = {}) {
  const start = async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    return { running: await run(settings, new TestClock(), logger), lines };
  };
  return { one: await start(), other: await start() };
}

it('readers of one service do not wait for a reader of the other', async () => {
  const { one, other } = await runTwo();
  const { readQueue } = one.running.service.forum.store.log;
  let isNext = false;
  await readQueue.wait('foreground');
  const next = readQueue.wait('foreground').then(() => {
    isNext = true;
  });
  await other.running.service.forum.store.log.readQueue.wait('foreground');
  expect(isNext).toBe(false);
  await next;
});

it('the limits of one service do not affect the other', async () => {
  const { one, other } = await runTwo({ RATE_PER_ADDRESS_BURST: '2', RATE_PER_ADDRESS_PER_SECOND: '1' });
  const statuses = async ({ url }: { readonly url: string }) => {
    const responses = [];
    for (let round = 0; round < 3; round++) responses.push((await fetch(`${url}/chambers`)).status);
    return responses;
  };
  expect(await statuses(one.running)).toEqual([200, 200, 429]);
  expect(await statuses(other.running)).toEqual([200, 200, 429]);
});

it('each service counts its own requests and events', async () => {
  const { one, other } = await runTwo({ METRICS_PORT: '0' });
  await debating(one.running);
  expect(await appended(one.lines)).toBe(3);
  expect(await appended(other.lines)).toBe(0);
});

it('after one service ends, the other still works, with its streams and its verifier', async () => {
  const { one, other } = await runTwo();
  const { debate } = await debating(other.running);
  await one.running.stop();
  expect(await debate('Still here.')).toBe(3);
  await newAgent(other.running);
});

/** State that belongs to the process or to a library, not to a service; each file has the reason. */
const MAY_HOLD_STATE = [
  'src/crypto/keccak.ts',
  'src/http/response.ts',
  'src/log/postgres/append-statement.ts',
  'src/log/postgres/session.ts',
];
/** Matches a variable, or a collection with a mutable type. A WeakMap is allowed, because its key belongs to one service. */
const STATE = /^(?:export )?(?:let |const \w+(?:: (?!Readonly)[^=]+)? = new (?:Map|Set|LRUCache)\b)/m;

it('no module of the service holds mutable state', () => {
  const holding = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .map((name) => join('src', name))
    .filter((path) => path.endsWith('.ts') && !path.startsWith('src/page/browser'))
    .filter((path) => STATE.test(readFileSync(path, 'utf8')));
  expect(holding.sort()).toEqual([...MAY_HOLD_STATE].sort());
});

async function appended(lines: readonly string[]): Promise<number> {
  const { url } = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'metrics');
  const text = await (await fetch(url)).text();
  return Number(/^chambers_events_appended_total (\d+)$/m.exec(text)?.[1]);
}
