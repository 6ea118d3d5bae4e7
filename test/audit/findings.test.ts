// A check may remain unevaluated only because of a finding or a missing input.
import { describe, expect, test } from 'vitest';
import { Findings, LOSS_CHECKS, mostSevere } from '../../src/audit/report/findings.ts';

const LOST = { follows: LOSS_CHECKS, why: 'event 2 is lost, and later moves depend on it' } as const;

function check(findings: Findings, name: string) {
  return findings.results().find((result) => result.name === name);
}

describe('a check that follows from a finding', () => {
  test('a check that follows from a finding is not evaluated if the finding exists', () => {
    const findings = new Findings();
    findings.notEvaluated(LOST, 'rules');
    findings.judge('order', [2], 'event 2 is missing');
    expect(check(findings, 'rules')).toMatchObject({
      verdict: 'not evaluated',
      counts: { notEvaluated: 1, broken: 0 },
    });
  });

  test('a check that follows from a finding is broken if no finding explains it', () => {
    const findings = new Findings();
    findings.judge('order', [1]);
    findings.notEvaluated(LOST, 'rules', 'views');
    findings.notEvaluated(LOST, 'rules');
    expect(check(findings, 'rules')).toMatchObject({
      verdict: 'broken',
      counts: { notEvaluated: 0, broken: 2 },
      findings: [{ sentence: `no finding explains why ${LOST.why}` }],
    });
    expect(check(findings, 'views')?.verdict).toBe('broken');
  });

  test('a check of a derived audit may follow from findings about the lines', () => {
    const lineFindings = new Findings();
    const findings = new Findings({ lineFindings });
    findings.notEvaluated(LOST, 'claims');
    expect(check(findings, 'claims')?.verdict).toBe('broken');
    lineFindings.judge('form', [2], 'event 2 is not JSON');
    expect(check(findings, 'claims')?.verdict).toBe('not evaluated');
  });
});

test('the most severe of several independent problems decides the verdict, whatever their order', () => {
  const open = { needs: 'chain', why: 'only the chain shows it' } as const;
  const doubt = { doubt: 'say which' };
  expect(mostSevere(undefined, open, doubt, 'it is wrong')).toBe('it is wrong');
  expect(mostSevere(open, undefined, doubt)).toBe(doubt);
  expect(mostSevere(undefined, open)).toBe(open);
  expect(mostSevere(undefined, undefined)).toBeUndefined();
});
