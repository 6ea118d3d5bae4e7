// A synchronous standby goes away and comes back: only commits wait for it.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { execute } from '../../kit/postgres.ts';
import { startProcess } from '../../kit/service-process.ts';
import { Signer } from '../../kit/signer.ts';
import { atEnd, temporaryFolder } from '../../kit/temporary.ts';
import { get, prepare, registrationOf, send } from '../../kit/wire.ts';
import { findPrograms, startPair } from '../../nodes/standby.ts';

const AWAY_MS = 30_000;
const CALLERS = 8;
/** The documented 5 s, with an allowance for a busy machine. */
const MOVE_MS_MAX = 7_000;
const READ_MS_MAX = 3_000;
/** One append or clock write, one lease claim, and four other commits. */
const WAITING_MAX = 6;

const programs = findPrograms();

it.runIf(programs !== undefined)(
  'without the standby, moves get 503 after 5 s, reads continue and sessions do not pile up, until it returns',
  { timeout: 180_000 },
  async () => {
    const pair = await startPair(programs as string);
    atEnd(pair.stop);
    const node = await startProcess('', {
      DATABASE_PATH: '',
      DATABASE_URL: pair.url,
      SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json'),
      LOG_LEVEL: 'error',
    });
    const register = () =>
      send(node.url, prepare('POST', '/register', { body: registrationOf(new Signer()), publicUrl: node.url }));
    const timed = async (work: () => Promise<{ readonly status: number }>) => {
      const begin = performance.now();
      return { ...(await work()), millis: performance.now() - begin };
    };
    const first = await register();
    expect(first.status).toBe(200);
    const { did } = first.body as { readonly did: string };
    pair.signalStandby('SIGSTOP');
    atEnd(() => pair.signalStandby('SIGCONT'));
    const end = performance.now() + AWAY_MS;
    const moves: { readonly status: number; readonly millis: number }[] = [];
    const reads: typeof moves = [];
    const moving = Array.from({ length: CALLERS }, async () => {
      for (; performance.now() < end; await sleep(200)) moves.push(await timed(register));
    });
    const reading = Array.from({ length: CALLERS }, async () => {
      for (; performance.now() < end; await sleep(200)) {
        reads.push(await timed(() => get(node.url, `/agents/${did}`)));
        reads.push(await timed(() => get(node.url, '/chambers?limit=1')));
      }
    });
    await Promise.all([...moving, ...reading]);
    // A read is active only for a moment; a commit waits 5 s for the standby.
    const active = "SELECT query FROM pg_stat_activity WHERE application_name = 'chambers' AND state = 'active'";
    await expect
      .poll(async () => (await execute(pair.primaryUrl, active)).length, { timeout: 1_000 })
      .toBeLessThanOrEqual(WAITING_MAX);
    expect(new Set(moves.map(({ status }) => status))).toEqual(new Set([503]));
    expect(Math.max(...moves.map(({ millis }) => millis))).toBeLessThan(MOVE_MS_MAX);
    expect(new Set(reads.map(({ status }) => status))).toEqual(new Set([200]));
    expect(Math.max(...reads.map(({ millis }) => millis))).toBeLessThan(READ_MS_MAX);
    expect((await get(node.url, '/ready')).status).toBe(503);
    pair.signalStandby('SIGCONT');
    await expect.poll(async () => (await get(node.url, '/ready')).status).toBe(200);
    expect((await register()).status).toBe(200);
    const syncing = "SELECT FROM pg_stat_activity WHERE application_name = 'chambers' AND wait_event = 'SyncRep'";
    await expect.poll(() => execute(pair.primaryUrl, syncing)).toEqual([]);
  },
);
