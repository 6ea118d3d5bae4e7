// A hostile or broken service: if a member of a response is missing or has the wrong type, a command names the member or does not need
// it.
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HostileService, openHostileService } from '../client/hostile-service.ts';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from '../client/live-service.ts';
import { wrongShapes } from '../kit/wrong-shapes.ts';
import { type Run, run } from './run.ts';

/** One of six alterations for each member, another one for the next member; SHAPES=all tries all six. */
const isSelected = (index: number) => process.env['SHAPES'] === 'all' || (index + Math.floor(index / 6)) % 6 === 0;
const WALLET = `--wallet=0x${'11'.repeat(20)}`;

const LINES = join(tmpdir(), `wrong-shapes-${process.pid}.ndjson`);

const live = sharedLiveService();
let hostile: HostileService;
beforeAll(async () => {
  hostile = await openHostileService(live.baseUrl);
  await chambers('agent new');
  await chambers(`agent register ${WALLET} --email=a@example.org`);
  const other = await newAgent(live);
  await other.createChamber(newChamber(live.now()));
  await chambers('move join 1');
  await other.joinChamber(1);
  live.advance(PHASE_MILLIS);
  await chambers('move propose 1 --name=Tea --ticker=TEA');
});
afterAll(() => {
  hostile.close();
  rmSync(LINES, { force: true });
});

const chambers = (words: string): Promise<Run> =>
  run(words.split(' '), { CHAMBERS_URL: hostile.url, CHAMBERS_KEY_FILE: join(live.folder, 'ada.json') });

/** Signs of a JavaScript error or of an undefined value. */
const UNCLEAR = /undefined|NaN|\[object|Invalid (Date|time)|Cannot |is not (a function|iterable)|^failure/;

it.each([
  'chamber show 1',
  'chamber list',
  'agent show',
  `agent register ${WALLET} --email=a@example.org`,
  'todo',
  'move join 1',
  'move debate 1 --comment=x --idea=tea',
  'move commit 1 tea=1',
  'move reveal 1',
  'move pass 1',
  `export 1 --force --out=${LINES}`,
  'chamber create --name=Tea',
])('%s', { timeout: 120_000 }, async (words) => {
  const honest = new Map<string, string>();
  hostile.alter = (path, body) => {
    honest.set(path, body);
    return body;
  };
  await chambers(words);
  const unclear: string[] = [];
  let named = 0;
  for (const [altered, body] of honest) {
    for (const { path, value } of [...wrongShapes(parsed(body))].filter((_, index) => isSelected(index))) {
      hostile.alter = (url, sent) =>
        url === altered && isError(sent) === isError(body) ? `${JSON.stringify(value)}\n` : sent;
      const { exitCode, out, err } = await chambers(words);
      if (err.includes(`: ${path}`)) named++;
      const hasCode = exitCode === 0 || /^(CLIENT|FORUM)_ERR_/m.test(err);
      if (!hasCode || UNCLEAR.test(out + err))
        unclear.push(`${altered} ${path}: ${JSON.stringify(value)} ${out}${err}`);
    }
  }
  expect(unclear.slice(0, 10)).toEqual([]);
  expect(named).toBeGreaterThan(0);
});

/** A signature dated by the machine's clock would be rejected first, because the service's clock is an hour ahead. */
const isError = (body: string) => body.startsWith('{"error"');

/** The only value of a response, or of the first line of a page. */
function parsed(body: string): unknown {
  return JSON.parse(body.split('\n')[0] ?? '');
}
