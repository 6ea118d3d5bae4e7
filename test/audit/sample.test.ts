import { createReadStream, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { allocationsView, chamberView, ideaViews } from '../../projections/views.ts';
import { auditFile } from '../../src/audit/audit.ts';
import { ChamberAudit } from '../../src/audit/chamber/chamber-audit.ts';
import { CrossCheckedTree } from '../../src/audit/chamber/cross-checked-tree.ts';
import { readLines } from '../../src/audit/line/input.ts';
import { playPacedSample, playSample } from './sample.ts';
import { playAdmissionSample } from './sample-with-admission.ts';
import { playDebateSample } from './sample-with-amendments.ts';

const FOLDER = '../../fixtures/logs';
const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));

describe.each([
  { name: 'chamber', play: playSample, lines: 22, moves: 16 },
  { name: 'chamber-with-rounds', play: playPacedSample, lines: 28, moves: 26 },
  { name: 'chamber-with-amendments', play: playDebateSample, lines: 24, moves: 20 },
  { name: 'chamber-with-admission', play: playAdmissionSample, lines: 14, moves: 12 },
])('the sample log $name', ({ name, play, lines: lineCount, moves: moveCount }) => {
  const LINES = `${FOLDER}/${name}.ndjson`;
  const EXPECTED = `${FOLDER}/${name}.expected.json`;

  test(`${name}: the service writes the sample log byte for byte`, async () => {
    const { lines, expected } = await play();
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(LINES);
    await expect(`${JSON.stringify(expected, null, 2)}\n`).toMatchFileSnapshot(EXPECTED);
  });

  test(`${name}: every check of lines verifies the sample log`, async () => {
    const report = await auditFile(pathOf(LINES), {});
    const open = report.checks.filter(({ verdict }) => verdict !== 'verified').map(({ name }) => name);
    expect(open).toEqual([
      'preview',
      'views',
      'contract',
      'claims',
      'balances',
      'registration',
      'seen',
      'receipts',
      'checkpoint',
      'witnesses',
    ]);
    const counts = { lines: lineCount, moves: moveCount };
    expect(report).toMatchObject({ verdict: 'verified', chamberId: 1, ...counts, brokenEvents: [] });
    expect(report.counts).toEqual({ verified: 17, broken: 0, undecided: 0, notEvaluated: 10, total: 27 });
  });

  test(`${name}: the sample log has the expected views and root`, async () => {
    const audit = new ChamberAudit({ moves: new CrossCheckedTree() });
    for await (const line of readLines(createReadStream(pathOf(LINES)))) await audit.take(line);
    const { decisions, moves } = audit;
    const { state } = decisions;
    if (state === null) throw new Error('no chamber');
    const views = {
      preview: { root: moves.root(), eventCount: moves.size, asOfEventId: moves.size },
      chamber: chamberView(state, state.lastAt),
      ideas: ideaViews(state),
      allocations: allocationsView(state, state.lastAt),
    };
    expect(views).toEqual(JSON.parse(readFileSync(pathOf(EXPECTED), 'utf8')));
  });
});

test('the service writes the sample accounts byte for byte, and the auditor verifies them', async () => {
  const ACCOUNTS = `${FOLDER}/chamber-with-admission.accounts.ndjson`;
  const { accounts } = await playAdmissionSample();
  await expect(`${accounts.join('\n')}\n`).toMatchFileSnapshot(ACCOUNTS);
  const report = await auditFile(pathOf(`${FOLDER}/chamber-with-admission.ndjson`), { accounts: pathOf(ACCOUNTS) });
  expect(report.checks.find(({ name }) => name === 'registration')?.verdict).toBe('verified');
});
