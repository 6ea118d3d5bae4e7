// What the auditor says of the log that a service publishes: that it holds the lines, extends what was kept, and is cosigned.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { auditMain } from '../../src/audit/main.ts';
import type { AuditReport } from '../../src/audit/report/report-types.ts';
import { rotateKeyFile } from '../../src/keys/key-file.ts';
import { createWitnessServer } from '../../src/mirror/witness-server.ts';
import { parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import { formatVerifierKey, NOTE_KEY_TYPES, parseVerifierKey, toNoteKey } from '../../src/tlog/note.ts';
import { publicKeyOf, signWith } from '../../src/tlog/sign.ts';
import { debating, newAgent, type Running, run } from '../kit/service.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

let printed = '';
beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation((text: string) => {
    printed = text;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function audit(running: Running, options = {}) {
  const exitCode = await auditMain({ target: running.url, json: true, ...options });
  const report = JSON.parse(printed) as AuditReport;
  const checkOf = (name: string) => report.chambers[0]?.checks.find((check) => check.name === name);
  return { exitCode, report, checkOf };
}

async function covered({ service }: Running): Promise<string> {
  const { log, tree } = service.forum.store;
  return eventually(async () => {
    const checkpoint = await tree.checkpoint();
    expect(checkpoint?.size).toBe(await log.lastPlace());
    return checkpoint?.note ?? '';
  }, 20_000);
}

async function keyOf({ url }: Running): Promise<string> {
  return ((await (await fetch(url)).json()) as { readonly log: { readonly checkpointKey: string } }).log.checkpointKey;
}

describe('the published log', () => {
  it('holds the lines, and extends every checkpoint that was kept', { timeout: 60_000 }, async () => {
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

  it('that does not extend a checkpoint that was kept is broken, and a file proves it', {
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
    expect(await verifyMisbehaviour(proof)).toMatchObject({ checkpointKeys: [await keyOf(other)] });
  });

  it('is not evaluated where its key is not the one that the chamber records', { timeout: 60_000 }, async () => {
    const settings = { DATABASE_PATH: temporaryDatabase(), SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json') };
    const before = await run(settings);
    await debating(before);
    await before.stop();
    const now = before.clock.read();
    rotateKeyFile(settings.SERVICE_KEY_FILE, { now, until: now });
    const after = await run(settings, before.clock);
    await debating(after);
    await covered(after);
    const { report } = await audit(after);
    const verdicts = report.chambers.map(({ checks }) => checks.find(({ name }) => name === 'checkpoint')?.verdict);
    expect(verdicts).toEqual(['not evaluated', 'verified']);
  });

  it('is cosigned by the witnesses asked for, or broken', { timeout: 60_000 }, async () => {
    const [seed, stranger] = [new Uint8Array(32).fill(5), new Uint8Array(32).fill(6)];
    const witness = toNoteKey('witness.test/w1', NOTE_KEY_TYPES.cosignature, publicKeyOf(seed));
    const absent = toNoteKey('witness.test/w2', NOTE_KEY_TYPES.cosignature, publicKeyOf(stranger));
    const trees = new Map();
    const logs: Parameters<typeof createWitnessServer>[0]['logs'][number][] = [];
    const server = createWitnessServer({
      key: witness,
      sign: signWith(seed),
      logs,
      recall: (origin) => trees.get(origin),
      remember: (origin, tree) => void trees.set(origin, tree),
      now: () => 1_893_456_000,
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => void server.close().closeAllConnections());
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const [policy, strict] = [join(temporaryFolder(), 'policy'), join(temporaryFolder(), 'strict')];
    const line = `witness W1 ${formatVerifierKey(witness)} http://127.0.0.1:${port}\n`;
    writeFileSync(policy, `${line}quorum W1\n`);
    writeFileSync(strict, `${line}witness W2 ${formatVerifierKey(absent)}\ngroup both all W1 W2\nquorum both\n`);
    const running = await run({ WITNESS_POLICY_FILE: policy });
    logs.push(parseVerifierKey(await keyOf(running)) ?? expect.fail('no key'));
    await debating(running);
    await eventually(async () => expect(await covered(running)).toContain('witness.test/w1'), 30_000);
    expect((await audit(running, { witnesses: policy })).checkOf('witnesses')?.verdict).toBe('verified');
    const { exitCode, checkOf } = await audit(running, { witnesses: strict });
    expect([exitCode, checkOf('witnesses')?.verdict]).toEqual([3, 'broken']);
    expect(checkOf('witnesses')?.findings[0]?.sentence).toMatch('cosigned by 1 of 2 witnesses');
  });
});
