import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import { type Made, type Vector, vectors } from './vectors.ts';

const FOLDER = '../../fixtures/logs/vectors';
const folder = fileURLToPath(new URL(FOLDER, import.meta.url));
const VERDICTS = { verified: 'sound', broken: 'broken', undecided: 'undecided' } as const;

let made: Made;
beforeAll(async () => {
  made = await vectors();
});

test('the folder holds what they are made of, byte for byte', async () => {
  await expect(`${JSON.stringify(made.index, null, 2)}\n`).toMatchFileSnapshot(`${FOLDER}/index.json`);
  for (const [file, text] of made.texts) await expect(text).toMatchFileSnapshot(`${FOLDER}/${file}`);
  expect(readdirSync(folder).sort()).toEqual([...made.texts.keys(), 'README.md', 'index.json'].sort());
});

const index = JSON.parse(readFileSync(`${folder}/index.json`, 'utf8')) as readonly Vector[];

test.each(index)('$title: $verdict ($file)', async ({ file, accounts, verdict, eventIds }) => {
  const report = await auditFile(`${folder}/${file}`, { accounts: accounts && `${folder}/${accounts}` });
  expect(VERDICTS[report.verdict]).toBe(verdict);
  const [cause] = report.causes;
  const [first] = report.checks.flatMap(({ findings }) => findings.filter((finding) => finding.cause === 0));
  const named = cause?.eventIds.length ? cause.eventIds : (first?.eventIds ?? []);
  expect(named.length > 0).toBe(verdict === 'broken');
  expect(eventIds).toEqual(expect.arrayContaining([...named]));
});
