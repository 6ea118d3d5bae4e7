// A service with two histories is detected at the first move that refers from one to the other. Each kind of proof is sufficient by itself
// and offline, also when checked by an independent Python program.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Service } from '../../src/service/start.ts';
import { parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import { run as runCli } from '../cli/run.ts';
import { newChamber } from '../client/live-service.ts';
import type { AdvancedClock } from '../kit/clock.ts';
import { covered, ForkedService, publishedKeys } from '../kit/fork.ts';
import { hasPython } from '../kit/python.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { Witness } from '../kit/witness.ts';

const CHECKER = fileURLToPath(new URL('check_proof.py', import.meta.url));
const SLOW = { timeout: 180_000 };

let clock: AdvancedClock;

/** In the two histories, event 3 of chamber 1 differs; only one of them has event 2 of chamber 2. */
async function forked() {
  const world = new ForkedService();
  clock = world.clock;
  const before = await world.open('one');
  const [ann, bob, cat, dan] = await Promise.all(['ann', 'bob', 'cat', 'dan'].map((name) => world.agent(name)));
  if (ann === undefined || bob === undefined || cat === undefined || dan === undefined) return expect.fail('no agents');
  const { chamberId } = await ann.createChamber(newChamber(world.clock.read()));
  const { chamberId: other } = await ann.createChamber(newChamber(world.clock.read()));
  await ann.joinChamber(chamberId);
  await before.stop();
  world.fork();
  const one = await world.open('one');
  await bob.joinChamber(chamberId);
  await bob.joinChamber(other);
  const two = await world.open('two');
  await cat.joinChamber(chamberId);
  return { world, one, two, ann, bob, cat, dan, chamberId };
}

async function audit(target: string, options: readonly string[]) {
  const proofs = join(temporaryFolder(), 'proofs');
  const now = `--now=${new Date(clock.read()).toISOString()}`;
  const { exitCode, out, err } = await runCli(['audit', target, '--json', `--proofs=${proofs}`, now, ...options]);
  expect(err).toBe('');
  const files = exitCode === 0 ? [] : readdirSync(proofs).map((name) => join(proofs, name));
  return { exitCode, report: JSON.parse(out), files };
}

/** The command and the Python program accept the proof, and reject it if any of its texts is changed. */
async function expectProof(file: string, kind: string, service: Service): Promise<void> {
  const keys = await publishedKeys(service);
  const { exitCode, out } = await runCli(['proof', file, '--json']);
  expect([exitCode, JSON.parse(out)]).toEqual([
    0,
    expect.objectContaining({ sentence: expect.stringMatching(/^The service has/) }),
  ]);
  const { receiptKeys, checkpointKeys } = JSON.parse(out) as Record<'receiptKeys' | 'checkpointKeys', string[]>;
  for (const key of [...receiptKeys, ...checkpointKeys]) expect(keys).toContain(key);
  const proof = JSON.parse(readFileSync(file, 'utf8'));
  expect(proof.kind).toBe(kind);
  for (const altered of alterations(proof)) {
    const verifying = Promise.resolve()
      .then(() => verifyMisbehaviour(parseMisbehaviour(JSON.stringify(altered))))
      .then(() => JSON.stringify(altered));
    await expect(verifying).rejects.toThrow();
  }
  if (!hasPython) return;
  expect(execFileSync('python3', [CHECKER, file, ...keys], { encoding: 'utf8' })).toBe(`${kind}\n`);
  // The first two texts, format and kind, are skipped, so that every change is in signed content.
  const [, , altered] = alterations(proof);
  const forged = join(temporaryFolder(), 'forged.json');
  writeFileSync(forged, JSON.stringify(altered));
  expect(() => execFileSync('python3', [CHECKER, forged, ...keys], { stdio: 'ignore' })).toThrow();
}

/** Returns copies of the proof, each with one text changed in the middle. */
function alterations(value: unknown): readonly unknown[] {
  if (typeof value === 'string') {
    const middle = Math.floor(value.length / 2);
    return [value.slice(0, middle) + (value[middle] === 'A' ? 'B' : 'A') + value.slice(middle + 1)];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    alterations(member).map((altered) =>
      Array.isArray(value) ? value.with(Number(name), altered) : { ...value, [name]: altered },
    ),
  );
}

describe('a service with two histories', () => {
  it('the first move that refers from one history to the other exposes the service', SLOW, async () => {
    const { world, one, bob, chamberId } = await forked();
    await expect(bob.joinChamber(chamberId)).rejects.toMatchObject({
      code: 'FORUM_ERR_HISTORY',
      history: { eventId: 3 },
    });
    world.target = one.url;
    await expect((await world.agentAgain('cat')).joinChamber(chamberId)).rejects.toMatchObject({
      code: 'FORUM_ERR_HISTORY',
      history: { eventId: 3, seen: expect.stringMatching(/^0x/), leaf: expect.stringMatching(/^0x/) },
    });
  });

  it('two receipts prove that a service has two histories', SLOW, async () => {
    const { world, two, chamberId } = await forked();
    const lines = join(temporaryFolder(), 'lines.ndjson');
    await runCli(['export', `${chamberId}`, `--out=${lines}`, `--url=${two.url}`]);
    const receipts = join(temporaryFolder(), 'receipts');
    mkdirSync(receipts);
    for (const name of ['bob', 'cat']) {
      const folder = `${world.keyFile(name)}.receipts`;
      const [logId = ''] = readdirSync(folder);
      const text = readFileSync(join(folder, logId, `chamber-${chamberId}.ndjson`));
      writeFileSync(join(receipts, `${name}.ndjson`), text);
    }
    const { exitCode, report, files } = await audit(lines, [`--receipts=${receipts}`]);
    expect([exitCode, files.length]).toEqual([3, 1]);
    const { findings } = report.chambers[0].checks.find(({ name }: { name: string }) => name === 'receipts');
    expect(findings.map(({ sentence }: { sentence: string }) => sentence)).toEqual([
      expect.stringMatching(/^the service has signed a receipt for event 3 .* but its line has the leaf/),
      expect.stringMatching(/^the service has signed two receipts of event 3 of chamber 1: .* proves it$/),
    ]);
    await expectProof(files[0] ?? '', 'two-receipts', two);
  });

  it(
    'one receipt proves two histories, together with the log’s proof of a different line or a later checkpoint without the line',
    SLOW,
    async () => {
      const { world, two, dan, chamberId } = await forked();
      world.advanceSeconds(61);
      await dan.joinChamber(chamberId);
      await covered(two);
      const { exitCode, report, files } = await audit(two.url, [`--receipts=${world.keyFile('bob')}.receipts`]);
      expect(exitCode).toBe(3);
      const checks = report.chambers.map(({ checks, causes }: { checks: { name: string }[]; causes: object[] }) => [
        checks.find(({ name }) => name === 'receipts'),
        causes,
      ]);
      expect(checks).toEqual([
        [
          expect.objectContaining({ verdict: 'broken', counts: expect.objectContaining({ broken: 1 }) }),
          [{ eventIds: [3], sentence: 'Event 3 is not the one that the service promised in a receipt' }],
        ],
        [
          expect.objectContaining({ verdict: 'broken', counts: expect.objectContaining({ broken: 1 }) }),
          [{ eventIds: [2], sentence: 'Event 2 is not the one that the service promised in a receipt' }],
        ],
      ]);
      expect(report.problems).toHaveLength(2);
      const [missing = '', otherLine = ''] = [...files].sort();
      await expectProof(otherLine, 'receipt-and-line', two);
      await expectProof(missing, 'receipt-and-checkpoint', two);
    },
  );

  it('a service with two histories looks sound to agents who see only one of them', SLOW, async () => {
    const { world, one } = await forked();
    await covered(one);
    const { exitCode, report } = await audit(one.url, [`--receipts=${world.keyFile('bob')}.receipts`]);
    const named = report.chambers.map(({ checks }: { checks: { name: string; verdict: string }[] }) =>
      checks.filter(({ name }) => name === 'receipts' || name === 'seen').map(({ verdict }) => verdict),
    );
    expect({ exitCode, problems: report.problems, named }).toEqual({
      exitCode: 0,
      problems: [],
      named: [
        ['verified', 'verified'],
        // When the only move in the second chamber was made, its agent had seen nothing else of that chamber.
        ['not evaluated', 'verified'],
      ],
    });
  });

  it('a witness that has cosigned the first history does not cosign the second', SLOW, async () => {
    const { world, one, two, dan, chamberId } = await forked();
    const witness = new Witness();
    const [, logKey] = await publishedKeys(one);
    witness.watch(logKey);
    const policy = join(temporaryFolder(), 'policy');
    writeFileSync(policy, `${await witness.serve()}\nquorum none\n`);
    await Promise.all([one.stop(), two.stop()]);
    const first = await world.open('one', { WITNESS_POLICY_FILE: policy });
    await world.agent('eve');
    await eventually(async () => expect(await covered(first)).toContain('witness.test/w1'), 30_000);
    await first.stop();
    const second = await world.open('two', { WITNESS_POLICY_FILE: policy });
    await dan.joinChamber(chamberId);
    for (const name of ['fay', 'gus', 'hal', 'ida']) await world.agent(name);
    await eventually(() => expect(witness.statuses.at(-1)).toBe(422), 30_000);
    expect(await covered(second)).not.toContain('witness.test/w1');
  });

  it('a mirror proves that a service has two histories', SLOW, async () => {
    const { world, one, two, dan, chamberId } = await forked();
    const folder = temporaryFolder();
    await covered(one);
    expect((await runCli(['mirror', one.url, folder, '--once'])).exitCode).toBe(0);
    await dan.joinChamber(chamberId);
    for (const name of ['eve', 'fay']) await world.agent(name);
    await covered(two);
    const { exitCode, out } = await runCli(['mirror', two.url, folder, '--once', '--json']);
    expect(exitCode).toBe(3);
    await expectProof(JSON.parse(out).file, 'two-checkpoints', two);
  });

  it('kept checkpoints prove that a service has two histories', SLOW, async () => {
    const { world, one, two, dan, chamberId } = await forked();
    const kept = join(temporaryFolder(), 'kept');
    writeFileSync(kept, await covered(one));
    await dan.joinChamber(chamberId);
    for (const name of ['eve', 'fay']) await world.agent(name);
    await covered(two);
    const { exitCode, files } = await audit(two.url, [`--checkpoints=${kept}`]);
    expect([exitCode, files.length]).toEqual([3, 1]);
    await expectProof(files[0] ?? '', 'two-checkpoints', two);
  });
});
