// The auditor's reports about chambers with withheld texts.
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import { ProofFolder } from '../../src/audit/receipts/proof-folder.ts';
import { parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';

const folder = fileURLToPath(new URL('../../fixtures/logs/vectors/', import.meta.url));
const index = JSON.parse(readFileSync(`${folder}index.json`, 'utf8')) as readonly { file: string; title: string }[];
const fileOf = (title: string) => folder + index.find((each) => each.title === title)?.file;

let proofs: string;
beforeAll(async () => {
  proofs = await mkdtemp(join(tmpdir(), 'proofs-'));
});
afterAll(() => rm(proofs, { recursive: true }));

const audit = (title: string, request: Parameters<typeof auditFile>[1] = {}) =>
  auditFile(fileOf(title), { log: { keptNotes: [], proofs: new ProofFolder(proofs) }, ...request });

describe('a chamber with withheld texts', () => {
  const IDEA = 'an idea withheld with the transaction that deployed it';

  it('a chamber with withheld texts is sound, except for the texts of the events that the report names', async () => {
    const { verdict, sentence, withheldEvents } = await audit(IDEA);
    expect([verdict, withheldEvents]).toEqual(['verified', [4, 11, 23]]);
    expect(sentence).toBe('Sound, but for the texts of 3 events, withheld by the service (4, 11, 23).');
  });

  it('the report counts stubs as verified and their statements as not evaluated', async () => {
    const { checks } = await audit(IDEA);
    const { counts, verdict, note } = checks.find(({ name }) => name === 'withheld') ?? {};
    expect([verdict, counts?.verified, counts?.notEvaluated]).toEqual(['not evaluated', 4, 3]);
    expect(note).toMatch(/^event 4 can’t be verified, .* \(personal-data\): --originals/);
    expect(checks.find(({ name }) => name === 'signature')).toMatchObject({ verdict: 'not evaluated' });
  });

  it('a chamber with withheld texts is undecided with --whole', async () => {
    const { verdict, sentence } = await audit('a withheld comment', { policy: { whole: true } });
    expect(verdict).toBe('undecided');
    expect(sentence).toMatch(/could not be decided: event 10 can’t be verified/);
  });

  it('the auditor checks the signatures of original lines, which make the chamber complete', async () => {
    const title = 'an idea withheld with its transaction, and the original lines';
    const originals = fileOf(title).replace('.ndjson', '.originals.ndjson');
    const { verdict, sentence, checks } = await audit(title, { originals, policy: { whole: true } });
    expect([verdict, sentence]).toEqual(['verified', 'Sound.']);
    for (const name of ['withheld', 'signature', 'transactions'])
      expect(checks.find((check) => check.name === name)?.verdict, name).toBe('verified');
  });

  it('a chamber with withheld texts has the service’s outcome, even if the original lines are given', async () => {
    const title = 'an idea withheld with its transaction, and the original lines';
    const originals = fileOf(title).replace('.ndjson', '.originals.ndjson');
    const { outcome } = await audit(title, { originals, asksOutcome: true });
    expect(outcome).toMatchObject({
      view: { ideas: expect.arrayContaining([expect.objectContaining({ name: '[withheld]' })]) },
    });
    expect(outcome).toEqual((await audit(title, { asksOutcome: true })).outcome);
  });

  it('the check of withheld texts is verified if nothing is withheld', async () => {
    const { checks } = await audit('the whole log');
    expect(checks.find(({ name }) => name === 'withheld')).toMatchObject({ verdict: 'verified', note: null });
  });
});

describe('a contradicted stub', () => {
  it.each([
    ['by the original line', 'a stub that changes a stance, and the original line', 'stub-and-line'],
    ['by another stub', 'a stub, and another stub of its event with a different stance', 'two-stubs'],
  ])('a stub contradicted %s is a proof that anyone can verify', async (_title, title, kind) => {
    const originals = fileOf(title).replace('.ndjson', '.originals.ndjson');
    const { verdict, checks } = await audit(title, { originals });
    expect(verdict).toBe('broken');
    const file = readdirSync(proofs).find((name) => name.startsWith(kind)) ?? '';
    const sentences = checks.flatMap(({ findings }) => findings.map(({ sentence }) => sentence));
    expect(sentences.join()).toContain(`${join(proofs, file)} proves it`);
    const proof = parseMisbehaviour(readFileSync(join(proofs, file), 'utf8'));
    expect(await verifyMisbehaviour(proof)).toMatchObject({
      logId: 'c0ffee00'.repeat(4),
      receiptKeys: ['d8Me3uJ82jhdsCstWyVMr3_I2ueeTYG5agM1-2r1_bY'],
      checkpointKeys: [],
    });
  });

  it('a stub of an honest service is not a proof', async () => {
    const [stub = ''] = readFileSync(fileOf('a withheld comment'), 'utf8').split('\n').slice(9);
    const line = readFileSync(`${folder}../chamber-with-amendments.ndjson`, 'utf8').split('\n')[9] ?? '';
    const format = 'chambers-misbehaviour@v1';
    await expect(verifyMisbehaviour({ format, kind: 'stub-and-line', stub, line })).rejects.toThrow(
      'follows from the line',
    );
    await expect(verifyMisbehaviour({ format, kind: 'two-stubs', stubs: [stub, stub] })).rejects.toThrow(
      'do not contradict each other',
    );
    const forged = stub.replace('"against"', '"for"');
    await expect(verifyMisbehaviour({ format, kind: 'two-stubs', stubs: [stub, forged] })).rejects.toThrow(
      'does not verify',
    );
  });
});

it('a file of originals with a line that is not an event is rejected', async () => {
  const originals = join(proofs, 'originals.ndjson');
  await writeFile(originals, '{}\n');
  await expect(audit('a withheld comment', { originals })).rejects.toThrow('1 of its lines are not events');
  await expect(audit('a withheld comment', { originals: '/nowhere' })).rejects.toThrow('--originals=/nowhere');
});
