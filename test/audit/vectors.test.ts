// The auditor comes to the verdict of every vector, and its first finding names an event of it.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import type { Vector } from './vectors.ts';

const folder = fileURLToPath(new URL('../../fixtures/logs/vectors', import.meta.url));
const VERDICTS = { verified: 'sound', broken: 'broken', undecided: 'undecided' } as const;

const index = JSON.parse(readFileSync(`${folder}/index.json`, 'utf8')) as readonly Vector[];

/** Of each vector: the checks that are broken, and all events that findings name. */
const broken = new Map<string, string>();

test.each(index)('$title: $verdict ($file)', async ({ file, accounts, title, verdict, eventIds }) => {
  const report = await auditFile(`${folder}/${file}`, { accounts: accounts && `${folder}/${accounts}` });
  expect(VERDICTS[report.verdict]).toBe(verdict);
  const [cause] = report.causes;
  const [first] = report.checks.flatMap(({ findings }) => findings.filter((finding) => finding.cause === 0));
  const named = cause?.eventIds.length ? cause.eventIds : (first?.eventIds ?? []);
  expect(named.length > 0).toBe(verdict === 'broken');
  expect(eventIds).toEqual(expect.arrayContaining([...named]));
  const checks = report.checks.filter((check) => check.verdict === 'broken').map(({ name }) => name);
  broken.set(title, `${title} (${file}): ${checks.join(', ')} [${report.brokenEvents}]`);
});

test('the checks that are broken, and the events that they name, are those on record', async ({ skip }) => {
  skip(broken.size < index.length, 'needs all vectors');
  await expect(`${[...broken.values()].join('\n')}\n`).toMatchFileSnapshot('vectors.findings.txt');
});
