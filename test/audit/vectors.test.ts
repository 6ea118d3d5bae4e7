// Checks that the vectors in fixtures/logs are the generated ones, that the auditor agrees with each verdict, and that its first
// finding names one of the vector's events.
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import { auditContext } from '../../src/audit/context.ts';
import { ProofFolder } from '../../src/audit/receipts/proof-folder.ts';
import { LogOrder } from '../../src/audit/service/log-order.ts';
import { auditLines } from './forge.ts';
import { type Vector, vectors } from './vectors.ts';

const FOLDER = '../../fixtures/logs/vectors';
const folder = fileURLToPath(new URL(FOLDER, import.meta.url));
const VERDICTS = { verified: 'sound', broken: 'broken', undecided: 'undecided' } as const;

const index = JSON.parse(readFileSync(`${folder}/index.json`, 'utf8')) as readonly Vector[];

const proofs = await mkdtemp(join(tmpdir(), 'proofs-'));
afterAll(() => rm(proofs, { recursive: true }));

/** The broken checks of each vector, and the events of all findings. */
const broken = new Map<string, string>();

test.each(index.filter(({ after }) => after === undefined))(
  'the vector is $verdict: $title ($file)',
  async (vector) => {
    const { file, accounts, originals, title, verdict, eventIds } = vector;
    const report = await auditFile(`${folder}/${file}`, {
      accounts: accounts && `${folder}/${accounts}`,
      originals: originals && `${folder}/${originals}`,
      log: { keptNotes: [], proofs: new ProofFolder(proofs) },
    });
    expect(VERDICTS[report.verdict]).toBe(verdict);
    const [cause] = report.causes;
    const [first] = report.checks.flatMap(({ findings }) => findings.filter((finding) => finding.cause === 0));
    const named = cause?.eventIds.length ? cause.eventIds : (first?.eventIds ?? []);
    expect(named.length > 0).toBe(verdict === 'broken');
    expect(eventIds).toEqual(expect.arrayContaining([...named]));
    const checks = report.checks.filter((check) => check.verdict === 'broken').map(({ name }) => name);
    broken.set(title, `${title} (${file}): ${checks.join(', ')} [${report.brokenEvents}]`);
  },
);

test.each(index.filter(({ after }) => after !== undefined))(
  'the vector is $verdict: $title ($file, after $after)',
  async (vector) => {
    const { file, after = [], title, verdict, eventIds } = vector;
    const context = auditContext();
    const order = new LogOrder();
    const found: (readonly string[])[] = [];
    for (const [at, each] of [...after, file].entries()) {
      const audit = await auditLines(readFileSync(`${folder}/${each}`), {}, { context });
      order.take(at + 1, audit);
      const checks = audit.findings.results().filter((check) => check.verdict === 'broken');
      found.push([...checks.map(({ name }) => name), ...order.problems()]);
    }
    const last = found.pop() ?? [];
    expect(found.flat()).toEqual([]);
    expect(last.length > 0).toBe(verdict === 'broken');
    expect(eventIds).toEqual(verdict === 'broken' ? [1] : []);
    broken.set(title, `${title} (${file}): ${last.join(', ')} [${eventIds}]`);
  },
);

test('the vectors break the recorded checks and name the recorded events', async ({ skip }) => {
  skip(broken.size < index.length, 'needs all vectors');
  await expect(`${[...broken.values()].join('\n')}\n`).toMatchFileSnapshot('vectors.findings.txt');
});

test('the folder of vectors equals the generated files, byte for byte', async () => {
  const made = await vectors();
  await expect(`${JSON.stringify(made.index, null, 2)}\n`).toMatchFileSnapshot(`${FOLDER}/index.json`);
  for (const [file, text] of made.texts) await expect(text).toMatchFileSnapshot(`${FOLDER}/${file}`);
  expect(readdirSync(folder).sort()).toEqual([...made.texts.keys(), 'README.md', 'index.json'].sort());
});
