// Tests a closed chamber with a flipped bit in the database: its root is unknown, so it is not relayed, but it does not delay other chambers.
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { openRpc } from '../../src/relayer/rpc.ts';
import { HOUR } from '../kit/clock.ts';
import { debating, run } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { flipBit } from '../log/entries.ts';
import { onChain } from './relayer-chain.ts';

/** Writes three chambers with one member each; the events of the first chamber follow the registration of its member. */
async function write(path: string) {
  const running = await run({ DATABASE_PATH: path });
  const ids: number[] = [];
  for (let chamber = 0; chamber < 3; chamber++) ids.push((await debating(running)).id);
  await running.stop();
  running.clock.advance(10 * HOUR);
  return { clock: running.clock, ids };
}

test('a damaged chamber is not committed and raises one alert, but the others are committed', async () => {
  const path = temporaryDatabase();
  const { clock, ids } = await write(path);
  const [damaged = 0, ...others] = ids;
  flipBit(path, { column: 'line', position: 3, bit: 97 });

  const logged: { readonly msg: string; readonly stream?: number; readonly level: number }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const { url, stop } = await run({ DATABASE_PATH: path, CHAIN: '' }, clock, logger);
  // biome-ignore lint/suspicious/noExplicitAny: responses are JSON, destructured below
  const read = async (target: string): Promise<any> => (await fetch(url + target)).json();
  const statusOf = async (chamberId: number): Promise<unknown> => (await read(`/chambers/${chamberId}`)).commitStatus;
  await until(async () => (await Promise.all(others.map(statusOf))).every((status) => status === 'committed'));

  const { chain: config } = await read('/health');
  const rpc = openRpc(config.rpcUrl);
  const commitsOf = async (chamberId: number) => (await onChain({ rpc, config }, chamberId)).commits.length;
  expect(await Promise.all([damaged, ...others].map(commitsOf))).toEqual([0, 1, 1]);
  rpc.close();
  expect((await fetch(`${url}/ready`)).status).toBe(200);
  expect((await fetch(`${url}/chambers/${damaged}`)).status).toBe(500);
  await stop();
  const alerts = logged.filter(({ msg }) => msg.startsWith('alert raised'));
  expect(alerts).toMatchObject([{ level: 50, stream: damaged, msg: expect.stringContaining('restore a backup') }]);
});
