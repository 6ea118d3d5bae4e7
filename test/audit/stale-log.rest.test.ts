// Audits a service that withholds lines from its log; each audit waits a few seconds for the missing proofs.
import { describe, expect, it } from 'vitest';
import { call, debating, run } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';
import { audit as auditRunning, covered, logOf } from './running-audit.ts';
import { openTamperingProxy } from './tampering-proxy.ts';

const SLOW = { timeout: 180_000 };
const MINUTE = 60_000;

/** Plays a chamber: events 1 to 3 are in the log, the fourth is a minute old, and the fifth is new. */
async function played() {
  const running = await run();
  const { debate } = await debating(running);
  await debate('in the log');
  await covered(running);
  const stale = await (await fetch(`${running.url}${(await logOf(running)).prefix}/checkpoint`)).text();
  await debate('kept out of the log');
  running.clock.advance(MINUTE + 1_000);
  await debate('new');
  await covered(running);
  const proxy = await openTamperingProxy(running.url, running.clock.read);
  atEnd(() => proxy.close());
  return { running, proxy, stale };
}

async function audit({ running, proxy }: Awaited<ReturnType<typeof played>>, options = {}) {
  const { checkOf, ...audited } = await auditRunning({ url: proxy.url, clock: running.clock }, options);
  return { ...audited, sentences: checkOf('checkpoint')?.findings.map(({ sentence }) => sentence) };
}

const OVERDUE = 'event 4 is not covered by a checkpoint, although it is more than a minute old';

describe('an event that is a minute old and not in the log', () => {
  it('a newer event does not hide an overdue event that the log lacks', SLOW, async () => {
    const world = await played();
    world.proxy.tamper = (path, text) => (/events\/[45]\/tlog-proof$/.test(path) ? 'none' : text);
    expect(await audit(world, { chamber: 1 })).toMatchObject({ exitCode: 3, sentences: [OVERDUE] });
  });

  it(
    'an old checkpoint, shown at first or throughout, does not hide an overdue event that the log lacks',
    SLOW,
    async () => {
      const world = await played();
      const { proxy, stale } = world;
      const isHidden = (path: string) => /events\/[45]\/tlog-proof$/.test(path);
      proxy.tamper = (path, text) => (path.endsWith('/checkpoint') ? stale : isHidden(path) ? 'none' : text);
      const { exitCode, report } = await audit(world);
      expect([exitCode, report.problems]).toEqual([
        3,
        ['event 4 of chamber 1 is not covered by a checkpoint, although it is more than a minute old'],
      ]);
      proxy.tamper = (path, text) => (path.endsWith('/checkpoint') ? 'none' : isHidden(path) ? 'none' : text);
      expect((await audit(world)).exitCode).toBe(3);
    },
  );

  it('an honest service proves that an overdue event is in its log', SLOW, async () => {
    expect(await audit(await played())).toMatchObject({ exitCode: 0, report: { problems: [], doubts: [] } });
  });
});

describe('a chamber listed after the log was read', () => {
  it(
    'a chamber listed after the log was read must be under the largest checkpoint that its proofs show',
    SLOW,
    async () => {
      const running = await run();
      await debating(running);
      const { debate, id } = await debating(running);
      await covered(running);
      const { prefix } = await logOf(running);
      const stale = await (await fetch(`${running.url}${prefix}/checkpoint`)).text();
      // The response claims that the newest checkpoint proves the older chamber.
      const proofPath = '/chambers/1/events/2/tlog-proof';
      const proof = await (await fetch(running.url + proofPath)).text();
      await debate('of one history');
      await covered(running);
      running.clock.advance(MINUTE + 1_000);
      const proxy = await openTamperingProxy(running.url, running.clock.read);
      atEnd(() => proxy.close());
      const rows = (await (await fetch(`${running.url}${prefix}/index?after=0&limit=1000`)).text()).trim().split('\n');
      const last = rows.at(-1) ?? '';
      let lists = 0;
      proxy.tamper = (path, text) => {
        if (path.endsWith('/checkpoint')) return stale;
        if (path === proofPath) return proof;
        if (path.startsWith('/chambers?') && lists++ === 0)
          return JSON.stringify(JSON.parse(text).filter(({ chamberId }: { chamberId: number }) => chamberId !== id));
        // The entry that only the larger checkpoint covers is a second event 1 of the chamber.
        if (path.startsWith(`${prefix}/index?`))
          return text.replace(last, last.replace(/"eventId":\d+/, '"eventId":1'));
        return text;
      };
      const { exitCode, report } = await audit({ running, proxy, stale });
      expect([exitCode, report.problems]).toEqual([
        3,
        expect.arrayContaining([expect.stringMatching(`^the log has event 1 of chamber ${id} twice`)]),
      ]);
    },
  );

  it('a chamber listed after the log was read must also have its members’ accounts in the log', SLOW, async () => {
    const running = await run();
    await debating(running);
    const { by, id } = await debating(running);
    await covered(running);
    const { prefix } = await logOf(running);
    const paths = [`${prefix}/checkpoint`, `/chambers/1/events/2/tlog-proof`, `/chambers/${id}/events/2/tlog-proof`];
    const before = new Map<string, string>();
    for (const path of paths) before.set(path, await (await fetch(running.url + path)).text());
    await call(running, by, ['PUT', '/personality', { patch: { style: 'kept out of the log' } }]);
    await covered(running);
    running.clock.advance(MINUTE + 1_000);
    const proxy = await openTamperingProxy(running.url, running.clock.read);
    atEnd(() => proxy.close());
    let lists = 0;
    proxy.tamper = (path, text) => {
      if (path.startsWith('/chambers?') && lists++ === 0)
        return JSON.stringify(JSON.parse(text).filter(({ chamberId }: { chamberId: number }) => chamberId !== id));
      return before.get(path) ?? text;
    };
    const { exitCode, report } = await audit({ running, proxy, stale: '' });
    expect([exitCode, report.problems]).toEqual([
      3,
      [`event 2 of ${by.did} is not covered by a checkpoint, although it is more than a minute old`],
    ]);
  });
});
