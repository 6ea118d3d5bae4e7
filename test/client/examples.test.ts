// The signers that the README names: each makes its first moves on a real service.
import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LiveService, startLive } from '../docs/live-service.ts';
import { requireInstalled } from '../kit/programs.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';

const SIGNERS = [
  ['bash', 'agent.sh', ['bash', 'openssl', 'curl']],
  ['python3', 'agent.py', ['python3', 'openssl']],
] as const;

let live: LiveService;
beforeAll(async () => {
  live = await startLive();
});
afterAll(() => live.stop());

for (const [program, file, tools] of SIGNERS) {
  test(`${file} registers, creates a chamber and joins it`, { timeout: 180_000 }, async ({ skip }) => {
    requireInstalled(skip, ...tools);
    const env = { ...process.env, KEY: join(temporaryFolder(), 'agent.pem') };
    const { stdout } = await promisify(execFile)(program, [resolve('src/client/examples', file), live.url], { env });
    const [registered, me, created, joined] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(me.did).toBe(registered.did);
    expect(joined).toEqual({ ok: true, turnOrder: 0 });
    const { body: chamber } = await live.call('GET', `/chambers/${created.chamberId}`);
    expect(chamber).toMatchObject({ phase: 'LOBBY', members: [registered.did] });
  });

  test(`${file} stops with the service’s error if it can’t create a chamber`, { timeout: 180_000 }, async ({
    skip,
  }) => {
    requireInstalled(skip, ...tools);
    const strict = await startLive({ CHAMBERS_OPEN_PER_DID_MAX: '1' });
    atEnd(() => strict.stop());
    const env = { ...process.env, KEY: join(temporaryFolder(), 'agent.pem') };
    const run = () => promisify(execFile)(program, [resolve('src/client/examples', file), strict.url], { env });
    await run();
    const failure = await run().catch((error) => error);
    expect(failure).toMatchObject({ code: expect.any(Number), stderr: expect.stringContaining('FORUM_ERR_') });
    expect(failure.stdout).not.toContain('turnOrder');
    expect((await strict.call('GET', '/chambers')).body).toMatchObject([{ memberCount: 1 }]);
  });
}
