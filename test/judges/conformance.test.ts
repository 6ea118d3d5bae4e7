// The conformance suite of the Model Context Protocol against /mcp and `chambers mcp`, with both protocol versions. The suite
// expects certain tools, prompts and resources (test_…) of its own example server; scenarios that need them are listed with a
// reason.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { newAgent, newChamber, openLiveService, REGISTRATION } from '../client/live-service.ts';
import { CLI } from '../kit/programs.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { judge } from './installed.ts';
import { bridge, startProgram } from './stdio-bridge.ts';

const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
type Revision = (typeof REVISIONS)[number];

interface Check {
  /** In the form `scenario/check`. */
  readonly name: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED';
  readonly errorMessage?: string;
}

type Exception = readonly [pattern: RegExp, reason: string, revision?: Revision];

/** Features that only the suite's example server has. */
const EXCEPTIONS: readonly Exception[] = [
  [
    /^(tools-call-|prompts-get-|resources-read-|resources-templates-read\/)/,
    'The suite’s tools, prompts and resources.',
  ],
  [/^json-schema-2020-12\//, 'The suite’s tool.'],
  [/^elicitation-sep/, 'No tool asks the user.', '2025-11-25'],
  [/^input-required-result-/, 'No tool asks the user.', '2026-07-28'],
  [/^completion-complete\//, 'The capability is not declared.'],
  [/^logging-set-level\//, 'The capability is not declared.', '2025-11-25'],
  [/^tasks-/, 'An extension that is not declared.', '2026-07-28'],
  [/^http-custom-header-server-validation\//, 'No argument is also a header.', '2026-07-28'],
  [/^server-sse-(polling|multiple-streams)\//, 'There are no sessions to continue.', '2025-11-25'],
  [
    /^server-stateless\/sep-2575-(server-rejects-undeclared-capability|missing-capability-http-400|http-server-no-independent-requests-on-stream|server-no-log-without-loglevel)$/,
    'The suite’s tools.',
    '2026-07-28',
  ],
];

const ON_HTTP: readonly Exception[] = [
  [/^resources-(un)?subscribe\//, 'It has no state, so there are no subscriptions.', '2025-11-25'],
  [
    /^server-stateless\/sep-2575-server-(sends-subscription-ack|tags-subscription-id)$/,
    'It has no state, so there are no subscriptions.',
    '2026-07-28',
  ],
];

const ON_STANDARD_INPUT: readonly Exception[] = [
  [/^dns-rebinding-protection\//, 'About HTTP.'],
  [/^http-header-validation\//, 'About HTTP.', '2026-07-28'],
  [/^server-stateless\/sep-2575-http-server-/, 'About HTTP.', '2026-07-28'],
  [
    /^server-stateless\/sep-2575-server-unsupported-version-error$/,
    'The SDK looks at the version of a connection’s first message only.',
    '2026-07-28',
  ],
];

/** Scenarios that must be tested in either revision, so that this test fails if nothing is tested. */
const KEPT = ['tools-list', 'prompts-list', 'resources-list'];

describe.each(REVISIONS)('conformance with revision %s of the protocol', { timeout: 300_000 }, (revision) => {
  test('/mcp conforms to the protocol', async () => {
    const live = await openLiveService();
    atEnd(() => live.stop());
    const agent = await newAgent(live);
    await agent.createChamber(newChamber(live.now()));
    await expectKept(`${live.baseUrl}/mcp`, revision, ON_HTTP);
  });

  test('`chambers mcp` conforms to the protocol', async () => {
    const live = await openLiveService();
    atEnd(() => live.stop());
    const keyFile = join(temporaryFolder(), 'agent.json');
    const agent = await Agent.fromKeyFile(live.baseUrl, keyFile);
    await agent.register(REGISTRATION);
    await agent.createChamber(newChamber(live.now()));
    const words = [process.execPath, CLI, 'mcp', `--url=${live.baseUrl}`, `--key=${keyFile}`];
    const { PATH } = process.env;
    const start = () => startProgram(words, { PATH, ...live.sharedTimeEnv });
    const url = await bridge(start, revision === '2026-07-28' ? FIRST : undefined);
    await expectKept(url, revision, ON_STANDARD_INPUT);
  });
});

/** A message of the later protocol version. */
const FIRST = {
  jsonrpc: '2.0',
  id: 'first',
  method: 'tools/list',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bridge', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

async function expectKept(url: string, revision: Revision, more: readonly Exception[]): Promise<void> {
  const checks = await conformance(url, revision);
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
  const exceptions = [...EXCEPTIONS, ...more].filter(([, , only = revision]) => only === revision);
  const rest = failed.filter(({ name }) => !exceptions.some(([pattern]) => pattern.test(name)));
  expect(rest.map(({ name, errorMessage }) => `${name}: ${errorMessage}`)).toEqual([]);
  const unused = exceptions.filter(([pattern]) => !failed.some(({ name }) => pattern.test(name)));
  expect(unused.map(([pattern, reason]) => `${pattern}: ${reason}`)).toEqual([]);
  const passed = checks.filter(({ status }) => status === 'SUCCESS').map(({ name }) => name.split('/')[0]);
  for (const scenario of KEPT) expect(passed).toContain(scenario);
}

/** Runs all scenarios of a revision. */
async function conformance(url: string, revision: Revision): Promise<readonly Check[]> {
  const folder = temporaryFolder();
  const [program, script] = judge('conformance');
  const options = ['--url', url, '--requirements', revision, '--output-dir', folder];
  await once(spawn(program, [script, 'server', ...options], { stdio: 'ignore' }), 'exit');
  return readdirSync(folder).flatMap((run) => {
    const [, scenario = ''] = /^server-(.*?)-\d{4}-\d\d-\d\dT/.exec(run) ?? [];
    const checks: readonly (Omit<Check, 'name'> & { readonly id: string })[] = JSON.parse(
      readFileSync(join(folder, run, 'checks.json'), 'utf8'),
    );
    return checks.map(({ id, ...check }) => ({ ...check, name: `${scenario}/${id}` }));
  });
}
