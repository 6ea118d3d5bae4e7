// Audits honest and lying services with a real chain, and checks the command's exit codes.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readTransaction } from '../../src/audit/chain/contracts.ts';
import { type AuditArguments, auditMain } from '../../src/audit/main.ts';
import type { ChamberReport } from '../../src/audit/report/report-types.ts';
import type { ChainInfo } from '../../src/client/forum-client.ts';
import { freePort } from '../../src/demo/free-port.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import type { Hex } from '../../src/vocabulary/values.ts';
import { run as runCommand } from '../cli/run.ts';
import { type LiveService, newChamber, openLiveService, PHASE_MILLIS } from '../client/live-service.ts';
import { playChamber } from '../client/play-chamber.ts';
import { eventually } from '../kit/until.ts';
import { type Line, parse, rechained, toText } from './forge.ts';
import { expectReport } from './report-schema.ts';
import { signed } from './sample.ts';
import { openTamperingProxy, type TamperingProxy } from './tampering-proxy.ts';

let live: LiveService;
let proxy: TamperingProxy;
let chain: ChainInfo;
let folder: string;
/** The milliseconds by which the Date header is behind the service's time. */
let setBack = 0;

/** Chamber 1 is committed and has a token; chamber 2 is in its lobby. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'audit-'));
  live = await openLiveService({ CHAIN: '' });
  proxy = await openTamperingProxy(live.baseUrl, () => live.now() - setBack);
  const ann = await playChamber(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  const proof = `${live.baseUrl}/chambers/${chamberId}/events/1/tlog-proof`;
  await eventually(async () => expect((await fetch(proof)).status).toBe(200), 20_000);
  const { chain: info } = await live.forum.health();
  if (info === null || info === undefined) throw new Error('no chain');
  chain = info;
}, 180_000);
afterAll(async () => {
  await proxy.close();
  await live.stop();
  rmSync(folder, { recursive: true });
});

let stdout = '';
let stderr = '';
beforeEach(() => {
  proxy.tamper = (_path, text) => text;
  stdout = '';
  stderr = '';
  vi.spyOn(console, 'log').mockImplementation((text) => {
    stdout += text;
  });
  vi.spyOn(console, 'error').mockImplementation((text) => {
    stderr += text;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function run(args: Partial<AuditArguments>): Promise<number> {
  stdout = '';
  const proofs = join(folder, 'proofs');
  const exitCode = await auditMain({ target: proxy.url, json: true, proofs, now: live.now, ...args });
  if (stdout.startsWith('{')) expectReport(JSON.parse(stdout));
  return exitCode;
}

/** Sets the audit's time to the service's. */
const atNow = () => `--now=${new Date(live.now()).toISOString()}`;
const chambers = () => (JSON.parse(stdout) as { readonly chambers: readonly ChamberReport[] }).chambers;
const verdictOf = (name: string) => chambers()[0]?.checks.find((check) => check.name === name)?.verdict;
const ofChain = () => ({ rpc: chain.rpcUrl ?? '', registries: [chain.registryAddress] });

describe('an honest service', () => {
  test('all checks verify an honest service with its chain and its accounts', async () => {
    expect(await run({ chamber: 1, ...ofChain() })).toBe(0);
    expect(chambers()).toMatchObject([
      { verdict: 'verified', counts: { verified: 24, broken: 0, undecided: 0, notEvaluated: 3, total: 27 } },
    ]);
  });

  test('an audit that names no chamber audits each chamber', async () => {
    expect(await run({})).toBe(0);
    expect(chambers().map(({ chamberId, moves }) => [chamberId, moves])).toEqual([
      [1, 5],
      [2, 1],
    ]);
  });

  test('the auditor retries a busy service', async () => {
    proxy.nextStatuses = [429, 503];
    expect(await run({ chamber: 1 })).toBe(0);
  });

  test('the printed table’s counts add up', async () => {
    expect(await run({ chamber: 1, json: false, verbose: true })).toBe(0);
    expect(stdout).toContain('22 verified, 0 broken, 5 not evaluated of 27 checks.');
    expect(stdout.match(/^(verified|broken|not evaluated) {2}/gm)).toHaveLength(27);
  });

  test('an exported file is verified against the chain', async () => {
    const path = join(folder, 'chamber.ndjson');
    writeFileSync(path, await (await fetch(`${live.baseUrl}/chambers/1/events`)).text());
    expect(await run({ target: path, ...ofChain() })).toBe(0);
    expect(['contract', 'claims'].map(verdictOf)).toEqual(['verified', 'verified']);
  });
});

/** Replaces the first match in the response to that path. */
const tamper = (of: string, from: RegExp, to: string) => {
  proxy.tamper = (path, text) => (path === of ? text.replace(from, to) : text);
};

describe('a service with correct lines and wrong responses', () => {
  test.each([
    ['a root', '/chambers/1/merkle-preview', /"root":"0x../, '"root":"0xff', 'preview'],
    ['a count', '/chambers/1/merkle-preview', /"eventCount":\d/, '"eventCount":9', 'preview'],
    ['an earlier phase', '/chambers/1', /"COMMITTED"/, '"ALLOCATE_REVEAL"', 'views'],
    ['a different time', '/chambers/1', /"now":"\d{4}/, '"now":"1999', 'views'],
    ['a member', '/chambers/1', /did:key:z6/, 'did:key:z7', 'views'],
    ['a committed root', '/chambers/1', /"merkleRoot":"0x../, '"merkleRoot":"0xff', 'views'],
    ['a backer', '/chambers/1/ideas', /"backers":1/, '"backers":2', 'views'],
    ['an additional idea', '/chambers/1/ideas', /\]$/, ',{"ideaId":"idea-2"}]', 'views'],
    ['an allocation', '/chambers/1/allocations', /"bps":10000/, '"bps":9999', 'views'],
    ['an outcome', '/chambers/1/outcome', /"totalBps":10000/, '"totalBps":9999', 'views'],
  ])('a service with correct lines is caught with %s in a response', async (_what, path, from, to, check) => {
    tamper(path, from, to);
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf(check)).toBe('broken');
    expect(chambers()[0]?.counts.broken).toBe(1);
  });

  test('a service whose phase does not match the clock is caught', async () => {
    tamper('/chambers/2', /"phase":"LOBBY"/, '"phase":"PROPOSAL"');
    expect(await run({ chamber: 2 })).toBe(3);
    expect(verdictOf('views')).toBe('broken');
  });

  test('a service whose log ends early is caught', async () => {
    const isEarly = (line: string) => line !== '' && JSON.parse(line).eventId <= 4;
    const early = (text: string) =>
      text
        .split('\n')
        .filter(isEarly)
        .map((line) => `${line}\n`)
        .join('');
    proxy.tamper = (path, text) => (path.includes('/events?') ? early(text) : text);
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('preview')).toBe('broken');
  });

  test('a service that withholds a view is caught', async () => {
    tamper('/chambers/1/ideas', /^.*$/, 'Nothing to see here');
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('views')).toBe('broken');
  });
});

describe('a service whose clock differs', () => {
  const HOUR = 3_600_000;
  afterEach(() => {
    setBack = 0;
  });
  const noteOf = (name: string) => chambers()[0]?.checks.find((check) => check.name === name)?.note;
  const FUTURE = /^the service’s responses are dated in the future, \d{4}-.* state the time with --now$/;

  /** The chamber has ended: only the time in its view depends on the clock. */
  const stateLater = (millis: number) =>
    tamper('/chambers/1', /"now":"[^"]*"/, `"now":"${new Date(live.now() + millis).toISOString()}"`);

  test('a different time in the chamber’s view is undecided, like lines dated at that time', async () => {
    stateLater(3 * HOUR);
    expect(await run({ chamber: 1 })).toBe(4);
    expect([verdictOf('views'), noteOf('views')]).toEqual(['undecided', expect.stringMatching(FUTURE)]);
  });

  test('a different time in the Date header is undecided', async () => {
    setBack = -HOUR;
    stateLater(HOUR);
    expect(await run({ chamber: 1 })).toBe(4);
    expect([verdictOf('views'), noteOf('views')]).toEqual(['undecided', expect.stringMatching(FUTURE)]);
    expect(await run({ chamber: 1, maxSkewSeconds: 3_700 })).toBe(0);
  });

  test('a time within the allowed clock skew is sound', async () => {
    setBack = -50_000;
    stateLater(50_000);
    expect(await run({ chamber: 1 })).toBe(0);
  });
});

describe('a service that withholds an outcome', () => {
  const noOutcome = () => {
    proxy.statusFor = (path) => (path === '/chambers/1/outcome' ? 404 : undefined);
  };
  afterEach(() => {
    proxy.statusFor = () => undefined;
  });

  test('a service that withholds an outcome is caught if the creation records keys', async () => {
    noOutcome();
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('views')).toBe('broken');
  });
});

describe('a service with a false list of chambers', () => {
  const problems = () => (JSON.parse(stdout) as { readonly problems: readonly string[] }).problems;
  const list = (listOf: (ids: readonly number[], before: string | null) => readonly number[]) => {
    proxy.tamper = (path, text) => {
      const { pathname, searchParams } = new URL(path, proxy.url);
      if (pathname !== '/chambers') return text;
      const ids = (JSON.parse(text) as readonly { readonly chamberId: number }[]).map(({ chamberId }) => chamberId);
      return JSON.stringify(listOf(ids, searchParams.get('before')).map((chamberId) => ({ chamberId })));
    };
  };

  test('a service that hides its first chamber is caught', async () => {
    list((ids) => ids.filter((id) => id !== 1));
    expect(await run({})).toBe(3);
    const logged = expect.stringMatching(
      /^the log has chamber 1, which the service does not list: .*evidence-entry-[0-9]+-[0-9a-f]{12}\.json contains the service’s statements about it$/,
    );
    expect(problems()).toEqual(['the service does not list chamber 1', logged]);
    expect(await run({ allowSkippedIds: true })).toBe(3);
    expect(problems()).toEqual([logged]);
    await run({});
    expect(chambers().map(({ chamberId, verdict }) => [chamberId, verdict])).toEqual([[2, 'verified']]);
  });

  test('a service that hides chambers in the middle is caught, whatever it returns for them', async () => {
    list((ids) => [5, ...ids]);
    expect(await run({})).toBe(3);
    expect(problems()).toEqual([
      'the service does not list chambers 3 to 4',
      expect.stringMatching(/^chamber 5 can’t be audited: .* returned 404/),
    ]);
  });

  test('a service that repeats the same chambers forever is caught, and its list is not read further', async () => {
    const requests: (string | null)[] = [];
    list((_ids, before) => {
      requests.push(before);
      return Array.from({ length: 200 }, (_, index) => 200 - index);
    });
    expect(await run({})).toBe(3);
    expect(requests).toEqual([null, '1']);
    expect(problems()[0]).toBe('the service lists chamber 200 after chamber 1: the rest of its list is not read');
  });
});

test('a service whose later chamber names no account line is caught', async () => {
  proxy.tamper = (path, text) =>
    path.startsWith('/chambers/2/events') ? text.replace(/"accountEventId":\d+,/, '') : text;
  expect(await run({})).toBe(3);
  const { problems } = JSON.parse(stdout) as { readonly problems: readonly string[] };
  expect(problems[0]).toBe(
    'event 1 of chamber 2 names no account line, although the earlier event 1 of chamber 1 names one',
  );
});

test('a service whose later chamber records no keys is caught', async () => {
  proxy.tamper = (path, text) =>
    path.startsWith('/chambers/2/events') ? text.replace(/"serviceKeys":\{[^}]*\},/, '') : text;
  expect(await run({})).toBe(3);
  const { problems } = JSON.parse(stdout) as { readonly problems: readonly string[] };
  expect(problems[0]).toBe(
    'event 1 of chamber 2 does not record the service’s keys, although the earlier creation of chamber 1 does',
  );
});

test('a service whose index assigns two entries to one event is caught', async () => {
  proxy.tamper = (path, text) =>
    path.includes('/index?')
      ? text.replace('"chamberId":2,"did":null,"eventId":1', '"chamberId":1,"did":null,"eventId":1')
      : text;
  expect(await run({})).toBe(3);
  const { problems } = JSON.parse(stdout) as { readonly problems: readonly string[] };
  expect(problems).toEqual([expect.stringMatching(/^the log has event 1 of chamber 1 twice: again at index \d+: /)]);
});

test('a service that omits a member’s account from its log is caught', async () => {
  const isOfAccount = (path: string) => path.startsWith('/agents/') && path.endsWith('/tlog-proof');
  proxy.tamper = (path, text) => (isOfAccount(path) ? text.replace(/^index \d+$/m, 'index 999999') : text);
  expect(await run({ chamber: 2 })).toBe(3);
  const { problems } = JSON.parse(stdout) as { readonly problems: readonly string[] };
  expect(problems[0]).toMatch(
    /^the service does not prove that event \d+ of the account of did:key:\S+ is in its log$/,
  );
});

describe('a service with false accounts', () => {
  test('a service without accounts is caught', async () => {
    proxy.tamper = (path, text) => (path.startsWith('/agents/') ? '{"detail":"agent not found"}' : text);
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('registration')).toBe('broken');
  });

  test('a service whose accounts name a different wallet is caught', async () => {
    proxy.tamper = (path, text) =>
      path.startsWith('/agents/') ? text.replaceAll(/0x1{40}/g, `0x${'22'.repeat(20)}`) : text;
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('registration')).toBe('broken');
  });
});

describe('exported lines', () => {
  test('exported lines are verified with their accounts', async () => {
    const [lines, accounts] = [join(folder, 'lines.ndjson'), join(folder, 'accounts.ndjson')];
    const words = ['export', live.baseUrl, '1', `--out=${lines}`, `--with-accounts=${accounts}`];
    expect(await runCommand(words)).toMatchObject({ exitCode: 0, err: '' });
    const audited = await runCommand(['audit', lines, `--accounts=${accounts}`, '--verbose', atNow()]);
    expect(audited).toMatchObject({ exitCode: 0, out: expect.stringMatching(/^verified {7}registration/m) });
    const alone = await runCommand(['audit', lines, '--verbose', atNow()]);
    expect(alone).toMatchObject({ exitCode: 0, out: expect.stringMatching(/^not evaluated {2}registration/m) });
  });

  test('exported lines with a manually replaced transaction are verified with the chain, and undecided without it', async () => {
    const lines = parse((await (await fetch(`${live.baseUrl}/chambers/1/events`)).text()).trimEnd().split('\n'));
    const sent = lines.find(({ type }) => type === 'relay.commit_submitted') as Line;
    const { payload: logged } = sent;
    const { rawTransaction, nonce } = logged as unknown as RelayTransaction;
    const { to, data } = await readTransaction(rawTransaction);
    const payload = { ...(await signed(to as Hex, data, { nonce, fee: 1n })) };
    const path = join(folder, 'replaced.ndjson');
    writeFileSync(path, toText(rechained(lines.map((line) => (line === sent ? { ...line, payload } : line)))));
    expect(await run({ target: path })).toBe(4);
    expect(verdictOf('transactions')).toBe('undecided');
    expect(await run({ target: path, ...ofChain() })).toBe(0);
    expect(verdictOf('claims')).toBe('verified');
  });

  test('an audit of undecided lines ends with exit code 4, and with 0 or 3 once they are decided', async () => {
    const first = await (await fetch(`${live.baseUrl}/chambers/1/events`)).text();
    const path = join(folder, 'open.ndjson');
    const [line = ''] = first.split('\n');
    const { ts } = JSON.parse(line) as { readonly ts: string };
    writeFileSync(path, `${line.replace(ts, new Date(Date.parse(ts) + 400_000).toISOString())}\n`);
    expect(await run({ target: path })).toBe(4);
    expect([JSON.parse(stdout).verdict, verdictOf('age')]).toEqual(['undecided', 'undecided']);
    stdout = '';
    expect(await run({ target: path, maxAgeSeconds: 500 })).toBe(0);
    expect(await run({ target: path, maxAgeSeconds: 350 })).toBe(3);
  });
});

describe('a report file', () => {
  const keep = (path: string, ...words: readonly string[]) =>
    runCommand(['audit', live.baseUrl, '--chamber=1', `--report=${path}`, atNow(), ...words]);
  const readReport = (path: string) => JSON.parse(readFileSync(path, 'utf8'));

  test('a report file names the audited source, the version, the time and the options', async () => {
    const path = join(folder, 'report.json');
    expect(await keep(path, `--rpc=${chain.rpcUrl}`, `--registry=${chain.registryAddress}`)).toMatchObject({
      exitCode: 0,
    });
    const report = readReport(path);
    expectReport(report);
    expect(report).toMatchObject({
      verdict: 'verified',
      auditor: { name: 'chambers audit', version: expect.any(String) },
      createdAt: expect.any(String),
      options: { chamber: '1', rpc: new URL(chain.rpcUrl ?? '').host, registry: chain.registryAddress },
      chambers: [
        { chamberId: 1, moves: 5, logId: expect.any(String), root: expect.any(String), origins: [live.baseUrl] },
      ],
    });
  });

  test('a report replaces no other file, and a failed audit leaves the report unchanged', async () => {
    const path = join(folder, 'kept.json');
    writeFileSync(path, 'kept');
    expect(await keep(path)).toMatchObject({ exitCode: 5, err: expect.stringContaining('already exists') });
    const away = `http://127.0.0.1:${await freePort()}`;
    expect(await runCommand(['audit', away, `--report=${path}`, '--force'])).toMatchObject({ exitCode: 6 });
    expect(readFileSync(path, 'utf8')).toBe('kept');
    expect(await keep(path, '--force')).toMatchObject({ exitCode: 0 });
    expect(readReport(path).verdict).toBe('verified');
  });
});

describe('a log that differs from the chain', () => {
  test.each([
    ['blockNumber', /"blockNumber":\d+/, '"blockNumber":999'],
    ['committedAt', /("committedAt":"[^"]+)\.000Z/, '$1.009Z'],
    ['graduatedAt', /("graduatedAt":"[^"]+)\.000Z/, '$1.009Z'],
  ])('a log is caught with a different %s than on the chain', async (_what, from, to) => {
    const path = join(folder, 'altered.ndjson');
    const text = await (await fetch(`${live.baseUrl}/chambers/1/events`)).text();
    writeFileSync(path, text.replace(from, to));
    expect([3, 4]).toContain(await run({ target: path, ...ofChain() }));
    expect(verdictOf('claims')).toBe('undecided');
    stdout = '';
    await run({ target: path, ...ofChain(), allowReorganized: true });
    expect(verdictOf('claims')).toBe('verified');
  });

  test('a log whose root differs from the chain is caught', async () => {
    expect(await run({ target: SAMPLE, ...ofChain() })).toBe(3);
    expect(['contract', 'claims'].map(verdictOf)).toEqual(['broken', 'broken']);
  });
});

const SAMPLE = new URL('../../fixtures/logs/chamber.ndjson', import.meta.url).pathname;

describe('input that cannot be audited', () => {
  const file = (text: string) => {
    const path = join(folder, 'input');
    writeFileSync(path, text);
    return path;
  };
  const agent = '{"chamberId":null,"did":"did:key:z","eventId":1,"type":"agent.registered"}\n';

  test.each([
    ['an empty file', '', 'it is empty'],
    ['text', 'Dear auditor,\n', 'it contains no chamber event: line 1 is not JSON'],
    ['one line torn', '{"chamberId":1,', 'it contains no chamber event: line 1 is torn'],
    ['unrelated JSON', '{"name":"x"}\n', 'line 1 has no type: it is not an event record'],
    [
      'an agent’s account',
      agent,
      'line 1 is of type agent.registered: it belongs to an agent’s account, not to a chamber',
    ],
  ])('%s ends with one sentence and exit code 2', async (_what, text, sentence) => {
    const target = file(text);
    expect(await run({ target, json: false })).toBe(2);
    expect(stderr).toContain(`usage: ${target}: `);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain('\n');
    expect(stdout).toBe('');
  });

  test.each([
    ['a missing file', { target: '/nowhere/chamber.ndjson' }, 'file not found'],
    ['a directory', { target: '/' }, 'it is a directory, not a file'],
    ['a chain without a registry', { target: SAMPLE, rpc: 'http://x' }, '--rpc needs --registry'],
    ['an origin that is not a URL', { target: SAMPLE, origins: ['forum.test'] }, '--origin must be an http(s) URL'],
    ['a missing file of accounts', { target: SAMPLE, accounts: '/nowhere' }, '--accounts=/nowhere: file not found'],
    [
      'a registry that is not an address',
      { target: SAMPLE, rpc: 'http://x', registries: ['0x11'] },
      '--registry must be an EVM address',
    ],
  ])('%s ends with exit code 2', async (_what, args, sentence) => {
    expect(await run(args)).toBe(2);
    expect(JSON.parse(stderr)).toEqual({ error: 'usage', detail: expect.stringContaining(sentence), exitCode: 2 });
  });

  test('a missing chamber is reported with the same error as in every command', async () => {
    expect(await run({ chamber: 9 })).toBe(2);
    const detail = `chamber 9 not found at ${proxy.url}`;
    expect(JSON.parse(stderr)).toEqual({ error: 'FORUM_ERR_NOT_FOUND', detail, exitCode: 2 });
  });

  test('an audit with a registry address that has no contract ends with exit code 2', async () => {
    expect(await run({ target: SAMPLE, ...ofChain(), registries: [`0x${'11'.repeat(20)}`] })).toBe(2);
    expect(stderr).toContain('the chain has no ChamberRegistry at');
  });

  test('lines of a chamber other than the requested one are broken', async () => {
    expect(await run({ target: SAMPLE, chamber: 2 })).toBe(3);
    expect(verdictOf('chamber')).toBe('broken');
    expect(stdout).toContain('22 lines belong to chamber 1, not to chamber 2');
  });

  test('lines of two logs are broken where they meet', async () => {
    const theirs = await (await fetch(`${live.baseUrl}/chambers/1/events?after=3`)).text();
    const ours = readFileSync(SAMPLE, 'utf8').split('\n').slice(0, 3).join('\n');
    expect(await run({ target: file(`${ours}\n${theirs}`) })).toBe(3);
    expect(verdictOf('chain')).toBe('broken');
    expect(chambers()[0]?.brokenEvents).toEqual(expect.arrayContaining([3, 4]));
  });

  test('an audit of an unreachable service or chain ends with exit code 6', async () => {
    const away = `http://127.0.0.1:${await freePort()}`;
    expect(await run({ target: away })).toBe(6);
    expect(await run({ target: SAMPLE, rpc: away, registries: [chain.registryAddress] })).toBe(6);
  });
});

test('a service whose clock was set back by the length of a phase is verified, including all views', async () => {
  live.advance(PHASE_MILLIS);
  setBack = PHASE_MILLIS;
  expect(await run({ chamber: 2 })).toBe(0);
  expect(verdictOf('views')).toBe('verified');
});
