// Audits cosignatures; each audit waits a few seconds for them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatVerifierKey } from '../../src/tlog/note.ts';
import { call, createChamber, debating, newAgent, run } from '../kit/service.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { Witness } from '../kit/witness.ts';
import { audit, covered, logOf } from './running-audit.ts';
import { openTamperingProxy } from './tampering-proxy.ts';

describe('the published log', () => {
  it('a published log without the required cosignatures is broken', { timeout: 180_000 }, async () => {
    const witness = new Witness();
    const absent = new Witness('witness.test/w2', new Uint8Array(32).fill(6));
    const [policy, strict] = [join(temporaryFolder(), 'policy'), join(temporaryFolder(), 'strict')];
    const line = `${await witness.serve()}\n`;
    writeFileSync(policy, `${line}quorum W1\n`);
    writeFileSync(strict, `${line}witness W2 ${formatVerifierKey(absent.key)}\ngroup both all W1 W2\nquorum both\n`);
    const running = await run({ WITNESS_POLICY_FILE: policy });
    witness.watch((await logOf(running)).checkpointKey);
    const { by, id } = await debating(running);
    await eventually(async () => expect(await covered(running)).toContain('witness.test/w1'), 30_000);
    expect((await audit(running, { witnesses: policy })).checkOf('witnesses')?.verdict).toBe('verified');
    const newest = await createChamber(running, by);
    await covered(running);
    const young = await audit(running, { witnesses: strict, chamber: newest });
    expect([young.checkOf('checkpoint')?.verdict, young.checkOf('witnesses')?.verdict]).toEqual([
      'verified',
      'undecided',
    ]);
    running.clock.advance(61_000);
    const { exitCode, checkOf } = await audit(running, { witnesses: strict });
    expect([exitCode, checkOf('witnesses')?.verdict]).toEqual([3, 'broken']);
    expect(checkOf('witnesses')?.findings[0]?.sentence).toMatch('cosigned by 1 of 2 witnesses');
    // The log is named, and its chamber is old enough.
    const named = join(temporaryFolder(), 'named');
    writeFileSync(named, `log ${(await logOf(running)).checkpointKey}\n${line}quorum W1\n`);
    for (const options of [{}, { chamber: id }])
      expect(await audit(running, { witnesses: named, ...options })).toMatchObject({
        exitCode: 0,
        report: { doubts: [] },
      });
    const proofPath = `/chambers/${id}/events/2/tlog-proof`;
    const cosigned = await (await fetch(running.url + proofPath)).text();
    // No witness has cosigned the following lines: other readers might see a different change of the member's account.
    witness.isAway = true;
    await call(running, by, ['PUT', '/personality', { patch: { style: 'dry' } }]);
    await covered(running);
    running.clock.advance(61_000);
    const proxy = await openTamperingProxy(running.url, running.clock.read);
    atEnd(() => proxy.close());
    proxy.tamper = (path, text) => (path === proofPath ? cosigned : text);
    for (const options of [{}, { chamber: id }]) {
      const fork = await audit({ ...running, url: proxy.url }, { witnesses: named, ...options });
      expect([fork.exitCode, fork.report.problems, fork.checkOf('witnesses')?.verdict]).toEqual([4, [], 'verified']);
      expect(fork.report.doubts).toEqual([
        expect.stringMatching(
          /^event 2 of (the account of )?did:key:\S+ is not covered by a checkpoint that the witnesses have cosigned/,
        ),
      ]);
    }
    await newAgent(running);
    await call(running, by, ['POST', `/chambers/${id}/debate`, { comment: 'new' }]);
    proxy.tamper = (path, text) => (/\/tlog-proof$|\/checkpoint$/.test(path) ? 'none' : text);
    const none = await audit(
      { ...running, url: proxy.url },
      { witnesses: named, chamber: await createChamber(running, by) },
    );
    expect(none.checkOf('witnesses')?.verdict).toBe('undecided');
  });
});
