// Audits the published log against the lines, kept checkpoints and cosignatures.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rotateKeyFile } from '../../src/keys/key-file.ts';
import { parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import { formatVerifierKey, parseVerifierKey, toNoteKey } from '../../src/tlog/note.ts';
import { debating, newAgent, run } from '../kit/service.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { audit, covered, logOf, type PublishedLog } from './running-audit.ts';
import { openTamperingProxy } from './tampering-proxy.ts';

/** The log's key under the name of a different log. */
function ofAnotherLog(log: PublishedLog): object {
  const prefix = `/log/${'0'.repeat(32)}`;
  const { publicKey, type } = parseVerifierKey(log.checkpointKey) ?? expect.fail('no key');
  return { ...log, prefix, checkpointKey: formatVerifierKey(toNoteKey(`forum.test${prefix}`, type, publicKey)) };
}

describe('the published log', () => {
  it('a published log that contains the lines and extends every kept checkpoint is verified', {
    timeout: 60_000,
  }, async () => {
    const running = await run({ DATABASE_PATH: temporaryDatabase() });
    const { debate } = await debating(running);
    const kept = [await covered(running)];
    await debate('one');
    kept.push(await covered(running));
    await debate('two');
    const checkpoints = join(temporaryFolder(), 'checkpoints');
    writeFileSync(checkpoints, kept.join(''));
    const { exitCode, report, checkOf } = await audit(running, { checkpoints });
    expect({ exitCode, problems: report.problems }).toEqual({ exitCode: 0, problems: [] });
    expect(checkOf('checkpoint')).toMatchObject({ verdict: 'verified', counts: { verified: 1 } });
    expect(checkOf('witnesses')?.verdict).toBe('not evaluated');
  });

  it('a published log that does not extend a kept checkpoint is broken, and a file proves it', {
    timeout: 60_000,
  }, async () => {
    const path = temporaryDatabase();
    const first = await run({ DATABASE_PATH: path });
    await debating(first);
    await covered(first);
    await first.stop();
    const fork = join(temporaryFolder(), 'fork');
    cpSync(dirname(path), fork, { recursive: true });
    rmSync(join(fork, 'chambers.db.lock'), { force: true });
    const one = await run({ DATABASE_PATH: path }, first.clock);
    await newAgent(one);
    const checkpoints = join(temporaryFolder(), 'checkpoints');
    writeFileSync(checkpoints, await covered(one));
    await one.stop();
    const other = await run({ DATABASE_PATH: join(fork, 'chambers.db') }, first.clock);
    await newAgent(other);
    await newAgent(other);
    await covered(other);
    const proofs = join(temporaryFolder(), 'proofs');
    const { exitCode, report } = await audit(other, { checkpoints, proofs });
    expect(exitCode).toBe(3);
    expect(report.problems).toEqual([expect.stringMatching(/has signed a checkpoint of size 4 .* and one of size 5/)]);
    const [file = ''] = readdirSync(proofs);
    const proof = parseMisbehaviour(readFileSync(join(proofs, file), 'utf8'));
    expect(await verifyMisbehaviour(proof)).toMatchObject({ checkpointKeys: [(await logOf(other)).checkpointKey] });
  });

  it('a published log is not evaluated if the chamber records a different key', { timeout: 60_000 }, async () => {
    const settings = { DATABASE_PATH: temporaryDatabase(), SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json') };
    const before = await run(settings);
    await debating(before);
    await before.stop();
    const now = before.clock.read();
    await rotateKeyFile(settings.SERVICE_KEY_FILE, { now, until: now });
    const after = await run(settings, before.clock);
    await debating(after);
    await covered(after);
    const { report } = await audit(after);
    const verdicts = report.chambers.map(({ checks }) => checks.find(({ name }) => name === 'checkpoint')?.verdict);
    expect(verdicts).toEqual(['not evaluated', 'verified']);
  });

  it('a published log under a key that no chamber records is undecided unless the caller names the log', {
    timeout: 60_000,
  }, async () => {
    const settings = { DATABASE_PATH: temporaryDatabase(), SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json') };
    const before = await run(settings);
    await debating(before);
    await before.stop();
    const now = before.clock.read();
    await rotateKeyFile(settings.SERVICE_KEY_FILE, { now, until: now });
    const after = await run(settings, before.clock);
    await newAgent(after);
    await covered(after);
    for (const options of [{}, { chamber: 1 }]) {
      const { exitCode, report } = await audit(after, options);
      expect([exitCode, report.doubts]).toEqual([
        4,
        [
          expect.stringMatching(
            /^the key of the log differs from the one recorded by chamber 1, the newest chamber read/,
          ),
        ],
      ]);
    }
    const witnesses = join(temporaryFolder(), 'policy');
    writeFileSync(witnesses, `log ${(await logOf(after)).checkpointKey}\nquorum none\n`);
    expect(await audit(after, { witnesses })).toMatchObject({ exitCode: 0, report: { doubts: [] } });
  });

  it('a published log is undecided if the witness policy names no witnesses', { timeout: 60_000 }, async () => {
    const running = await run();
    await debating(running);
    await covered(running);
    const witnesses = join(temporaryFolder(), 'policy');
    writeFileSync(witnesses, 'quorum none\n');
    const { exitCode, report } = await audit(running, { witnesses });
    expect([exitCode, report.doubts]).toEqual([4, [expect.stringMatching(/^the policy of --witnesses names no log/)]]);
  });

  it.each<[string, (log: PublishedLog) => object]>([
    ['that GET / does not name', () => ({})],
    ['with a prefix that differs from its origin', (log) => ({ log: { ...log, prefix: `/log/${'0'.repeat(32)}` } })],
    ['that is not the log of the lines', (log) => ({ log: ofAnotherLog(log) })],
  ])('a published log %s is broken if a chamber records its key', async (_, answer) => {
    const running = await run();
    await debating(running);
    await covered(running);
    const proxy = await openTamperingProxy(running.url, running.clock.read);
    atEnd(() => proxy.close());
    proxy.tamper = (path, text) => (path === '/' ? JSON.stringify(answer(JSON.parse(text).log)) : text);
    for (const options of [{}, { chamber: 1 }]) {
      const { exitCode, checkOf } = await audit({ ...running, url: proxy.url }, options);
      expect([exitCode, checkOf('checkpoint')?.verdict]).toEqual([3, 'broken']);
    }
  });

  it('an unpublished log is broken if checkpoints of it were kept', { timeout: 60_000 }, async () => {
    const running = await run();
    await debating(running);
    const checkpoints = join(temporaryFolder(), 'checkpoints');
    writeFileSync(checkpoints, await covered(running));
    const proxy = await openTamperingProxy(running.url, running.clock.read);
    atEnd(() => proxy.close());
    proxy.tamper = (path, text) => (path === '/' ? '{}' : text);
    const { exitCode, report } = await audit({ ...running, url: proxy.url }, { checkpoints });
    expect([exitCode, report.problems]).toEqual([
      3,
      ['the service publishes no log, but you have kept checkpoints of one'],
    ]);
  });

  it.each<[string, string, object]>([
    ['broken', 'named', { problems: [expect.stringMatching(/^the service publishes no log, but --witn/)] }],
    ['undecided', 'not named', { doubts: [expect.stringMatching(/^the service publishes no log that w/)] }],
  ])(
    'an unpublished log is %s if witnesses are required and the log is %s',
    { timeout: 60_000 },
    async (_, is, expected) => {
      const running = await run();
      const { debate } = await debating(running);
      await debate('one');
      const proxy = await openTamperingProxy(running.url, running.clock.read);
      atEnd(() => proxy.close());
      proxy.tamper = (path, text) => (path === '/' ? '{}' : text);
      const witnesses = join(temporaryFolder(), 'policy');
      writeFileSync(witnesses, `${is === 'named' ? `log ${(await logOf(running)).checkpointKey}\n` : ''}quorum none\n`);
      const { report } = await audit({ ...running, url: proxy.url }, { witnesses });
      expect(report).toMatchObject(expected);
    },
  );

  it('a published log is undecided if lines are dated in the future', { timeout: 60_000 }, async () => {
    const running = await run();
    const { debate } = await debating(running);
    await debate('one');
    await covered(running);
    const last = running.clock.read();
    for (const [now, exitCode] of [
      [last, 0],
      [last - 60_000, 0],
      [last - 61_000, 4],
    ] as const) {
      const audited = await audit(running, { now: () => now });
      expect([now, audited.exitCode]).toEqual([now, exitCode]);
      if (exitCode !== 0)
        expect(audited.report.sentence).toMatch(
          /2 things could not be decided: event \d is dated in the future, 2030-.* responses are dated in the future/,
        );
    }
    expect((await audit(running, { now: () => last - 61_000, maxSkewSeconds: 61 })).exitCode).toBe(0);
  });
});
