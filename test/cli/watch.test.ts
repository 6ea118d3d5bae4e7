// `chambers watch` runs a command for each duty.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { sharedLiveService } from '../client/live-service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { agentInTurn, startWatch } from './watching.ts';

const live = sharedLiveService();

it('watch runs the command once per duty, with the item, the chamber and the duty', async () => {
  const { chamberId, folder, key } = await agentInTurn(live);
  const seen = join(folder, 'seen');
  const words = `cat >> ${seen}; echo "$CHAMBERS_CHAMBER $CHAMBERS_MUST $CHAMBERS_KEY_FILE"; echo oh >&2`;
  const { out, err } = startWatch(live, key, `--exec=${words}`);
  await until(() => out().includes('done'));
  expect(out().split('\n')).toEqual([
    `chamber ${chamberId}: pass is due in PROPOSAL`,
    `chamber ${chamberId} | ${chamberId} pass ${key}`,
    `chamber ${chamberId}: pass done`,
    '',
  ]);
  expect(err()).toContain(`chamber ${chamberId} | oh\n`);
  expect(JSON.parse(readFileSync(seen, 'utf8'))).toMatchObject({ chamberId, must: 'pass', phase: 'PROPOSAL' });
});

it('watch reports an unregistered agent at the start', async () => {
  const key = join(temporaryFolder(), 'stranger.json');
  await Agent.fromKeyFile(live.baseUrl, key);
  const { child } = startWatch(live, key);
  const [[code], err] = await Promise.all([once(child, 'exit'), text(child.stderr as NodeJS.ReadableStream)]);
  expect([code, err]).toEqual([4, expect.stringContaining('run chambers agent register')]);
});
