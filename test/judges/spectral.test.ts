// Lints a service's /openapi.json with Spectral, its rules for OpenAPI and OWASP's rules for APIs. Accepted findings are listed
// with a reason.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../kit/service.ts';
import { judge, judgeFolder } from './installed.ts';

interface Finding {
  readonly code: string;
  readonly message: string;
  readonly path: readonly (string | number)[];
}

interface Exception {
  readonly rule: string;
  readonly reason: string;
  /** The findings of the rule that are accepted; all by default. */
  readonly when?: (finding: Finding, document: unknown) => boolean;
}

const EXCEPTIONS: readonly Exception[] = [
  { rule: 'owasp:api9:2023-inventory-access', reason: 'Every server of the service is public.' },
  { rule: 'owasp:api1:2023-no-numeric-ids', reason: 'Chambers are public, listed, and numbered on the chain.' },
  {
    rule: 'owasp:api4:2023-rate-limit',
    reason: 'Retry-After with a 429 is all that the service sends; the introduction names the limits.',
  },
  { rule: 'owasp:api2:2023-read-restricted', reason: 'What happens in chambers is public.', when: isUnsigned },
  {
    rule: 'owasp:api8:2023-define-error-responses-401',
    reason: 'An unsigned request cannot be rejected because of its signature.',
    when: isUnsigned,
  },
  {
    rule: 'owasp:api2:2023-write-restricted',
    reason: 'The body holds the signature of a wallet that was proven for the agent.',
    when: ({ path }) => path[1] === '/agents/{did}/retire',
  },
  { rule: 'owasp:api8:2023-define-error-responses-500', reason: 'A preflight reads nothing.', when: isPreflight },
  { rule: 'owasp:api8:2023-define-error-validation', reason: 'A preflight takes no input.', when: isPreflight },
  ...['string-limit', 'string-restricted', 'integer-limit', 'array-limit'].map((rule) => ({
    rule: `owasp:api4:2023-${rule}`,
    reason: 'Limits protect the service from requests; these are its own responses.',
    when: (finding: Finding) => !isOfRequests(finding),
  })),
  {
    rule: 'owasp:api4:2023-string-limit',
    reason: 'Its pattern bounds the text, or MAX_BODY_BYTES: fractions of a second may have any number of digits.',
    when: (finding, document) => at(document, finding.path)?.['pattern'] !== undefined,
  },
  {
    rule: 'owasp:api4:2023-string-limit',
    reason: 'An unknown idea is not found, however long its id.',
    when: ({ path }) => path.includes('DebateBody') && path.includes('ideaId'),
  },
  {
    rule: 'owasp:api4:2023-string-restricted',
    reason: 'What agents say is any text, of a limited length.',
    when: (finding, document) =>
      at(document, finding.path)?.['maxLength'] !== undefined ||
      (finding.path.includes('DebateBody') && finding.path.includes('ideaId')),
  },
  {
    rule: 'owasp:api4:2023-array-limit',
    reason: 'Every allocation names a different idea of the chamber, so the number of ideas is the limit.',
    when: ({ path }) => path.includes('RevealBody') && path.at(-1) === 'allocations',
  },
];

test('/openapi.json has only findings that are listed with a reason', async () => {
  const { url } = await run({ PUBLIC_URL: 'https://chambers.example.org' });
  const text = await (await fetch(`${url}/openapi.json`)).text();
  const document = JSON.parse(text);
  const findings = lint(text);
  expect(findings.length).toBeGreaterThan(0);
  const isListed = ({ rule, when }: Exception, finding: Finding) =>
    rule === finding.code && (when?.(finding, document) ?? true);
  const rest = findings.filter((finding) => !EXCEPTIONS.some((exception) => isListed(exception, finding)));
  expect(rest.map(({ code, message, path }) => `${code} at ${path.join('.')}: ${message}`)).toEqual([]);
  const unused = EXCEPTIONS.filter((exception) => !findings.some((finding) => isListed(exception, finding)));
  expect(unused.map(({ rule, reason }) => [rule, reason])).toEqual([]);
});

function lint(document: string): readonly Finding[] {
  const [rules, file] = ['rules.json', 'linted.json'].map((name) => join(judgeFolder('spectral'), name));
  if (rules === undefined || file === undefined) throw new Error('no file');
  writeFileSync(rules, JSON.stringify({ extends: ['spectral:oas', '@stoplight/spectral-owasp-ruleset'] }));
  writeFileSync(file, document);
  const results = join(judgeFolder('spectral'), 'findings.json');
  const [program, script] = judge('spectral');
  const options = ['--ruleset', rules, '--format', 'json', '--output', results, '--fail-severity', 'hint', '--quiet'];
  const { status, stderr } = spawnSync(program, [script, 'lint', file, ...options], { encoding: 'utf8' });
  // Exit code 1 means that there are findings.
  if (status !== 0 && status !== 1) throw new Error(stderr);
  return JSON.parse(readFileSync(results, 'utf8'));
}

function isUnsigned({ path: [, path = '', method = ''] }: Finding, document: unknown): boolean {
  const security = at(document, ['paths', path, method])?.['security'];
  return Array.isArray(security) && security.length === 0;
}

function isPreflight({ path }: Finding): boolean {
  return path[2] === 'options';
}

function isOfRequests({ path }: Finding): boolean {
  return path.includes('parameters') || path.includes('requestBody') || /Body$/.test(String(path[2]));
}

/** Returns the value at a path of the document. */
function at(document: unknown, path: Finding['path']): Readonly<Record<string, unknown>> | undefined {
  // The linter's paths lead through both objects and arrays.
  const step = (node: unknown, name: string | number) => (node as Record<string, unknown> | undefined)?.[name];
  return path.reduce<unknown>(step, document) as Readonly<Record<string, unknown>> | undefined;
}
