// A hostile service or chain costs the auditor bounded memory, bounded time and one request.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AGAIN, Costs, casesOf, expectCheap, TOO_LARGE } from '../client/cost.ts';
import { ROOT } from '../kit/programs.ts';

const SAMPLE = join(ROOT, 'fixtures/logs/chamber.ndjson');
const REGISTRY = '0x5FbDB2315678afecb367f032d93F642f64180aa3';

const costs = Costs.forThisFile();

const auditService = (option: string) => (url: string) =>
  costs.runCli(['audit', url, '--timeout=1', ...(option === '' ? [] : [option])]);

const auditChain = (url: string) =>
  costs.runCli(['audit', SAMPLE, `--rpc=${url}`, `--registry=${REGISTRY}`, '--timeout=1']);

const AUDITS = casesOf({
  '': ['gzipBomb', 'endlessBody', 'endlessError', 'endlessHeaders', 'smallValues', 'shapes', 'longTextOfAudit'],
  '--chamber=1': ['gzipBomb', 'endlessLine', 'smallValues'],
});

describe('the cost of an audit', AGAIN, () => {
  it.each(AUDITS)('an audit of a service with the option %j has a bounded cost under %s', async (option, attack) => {
    const attacked = await costs.attackedBy(attack, 'audit', auditService(option));
    expectCheap(attacked);
    if (TOO_LARGE.has(attack) && attack !== 'smallValues') expect(attacked.requests).toBe(1);
  });

  it.each(casesOf({ 'audit --rpc': ['gzipBomb', 'endlessBody', 'endlessHeaders', 'smallValues', 'longTextOfAudit'] }))(
    'an audit of a chain (%s) has a bounded cost under %s',
    async (command, attack) => {
      expectCheap(await costs.attackedBy(attack, command, auditChain));
    },
  );
});

/** Each command ends at a time limit (the auditor after 20 timeouts), so these tests run concurrently. */
describe('dripping bytes', AGAIN, () => {
  it.concurrent.each([
    ['chamber list', (url: string) => costs.runCli(['chamber', 'list', `--url=${url}`])],
    ['doctor', (url: string) => costs.runCli(['doctor', url])],
    ['audit', auditService('')],
    ['audit --chamber=1', auditService('--chamber=1')],
    ['audit --rpc', auditChain],
  ])('a dripping response has a bounded cost for %s', async (program, start) => {
    expectCheap(await costs.attackedBy('drip', program, start));
  });
});
