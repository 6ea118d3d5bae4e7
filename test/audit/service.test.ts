// The audit of a running service with its own chain, honest and lying, and the exit codes of the command.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type AuditArguments, auditMain } from '../../src/audit/main.ts';
import type { ChamberReport } from '../../src/audit/report.ts';
import type { ChainInfo } from '../../src/client/forum-client.ts';
import { playChamber } from '../client/play-chamber.ts';
import { newChamber, openStage, type Stage } from '../client/stage.ts';
import { type GoBetween, openGoBetween } from './go-between.ts';

let stage: Stage;
let between: GoBetween;
let chain: ChainInfo;
let folder: string;

/** Chamber 1 is committed, with a token; chamber 2 is in its lobby. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'audit-'));
  stage = await openStage({ CHAIN: '' });
  between = await openGoBetween(stage.baseUrl, stage.now);
  const ann = await playChamber(stage);
  await ann.createChamber(newChamber(stage.now()));
  const { chain: info } = await stage.forum.health();
  if (info === null || info === undefined) throw new Error('no chain');
  chain = info;
}, 60_000);
afterAll(async () => {
  await between.close();
  await stage.stop();
  rmSync(folder, { recursive: true });
});

let printed = '';
let complained = '';
beforeEach(() => {
  between.lie = (_path, text) => text;
  printed = '';
  complained = '';
  vi.spyOn(console, 'log').mockImplementation((text) => {
    printed += text;
  });
  vi.spyOn(console, 'error').mockImplementation((text) => {
    complained += text;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

const run = (args: Partial<AuditArguments>) => auditMain({ target: between.url, json: true, ...args });
const chambers = () => (JSON.parse(printed) as { readonly chambers: readonly ChamberReport[] }).chambers;
const verdictOf = (name: string) => chambers()[0]?.checks.find((check) => check.name === name)?.verdict;
const ofChain = () => ({ rpc: chain.rpcUrl ?? '', registry: chain.registryAddress });

describe('an honest service', () => {
  test('is verified in all but registrations, its chain included', async () => {
    expect(await run({ chamber: 1, ...ofChain() })).toBe(0);
    expect(chambers()).toMatchObject([
      { verdict: 'verified', counts: { verified: 20, broken: 0, notEvaluated: 1, total: 21 } },
    ]);
    expect(verdictOf('registration')).toBe('not evaluated');
  });

  test('is audited chamber by chamber when none is named', async () => {
    expect(await run({})).toBe(0);
    expect(chambers().map(({ chamberId, moves }) => [chamberId, moves])).toEqual([
      [1, 5],
      [2, 1],
    ]);
  });

  test('is given time when it is busy', async () => {
    between.refuse = [429, 503];
    expect(await run({ chamber: 1 })).toBe(0);
  });

  test('is reported in a table for people, whose counts add up', async () => {
    expect(await run({ chamber: 1, json: false })).toBe(0);
    expect(printed).toContain('18 verified, 0 broken, 3 not evaluated of 21 checks.');
    expect(printed.match(/^(verified|broken|not evaluated) {2}/gm)).toHaveLength(21);
  });

  test('exports a file that is verified against the chain', async () => {
    const path = join(folder, 'chamber.ndjson');
    writeFileSync(path, await (await fetch(`${stage.baseUrl}/chambers/1/events`)).text());
    expect(await run({ target: path, ...ofChain() })).toBe(0);
    expect(['contract', 'receipts'].map(verdictOf)).toEqual(['verified', 'verified']);
  });
});

/** Changes the first match of the answer to that path. */
const lie = (of: string, from: RegExp, to: string) => {
  between.lie = (path, text) => (path === of ? text.replace(from, to) : text);
};

describe('a service with right lines and wrong answers', () => {
  test.each([
    ['a root', '/chambers/1/merkle-preview', /"root":"0x../, '"root":"0xff', 'preview'],
    ['a count', '/chambers/1/merkle-preview', /"eventCount":\d/, '"eventCount":9', 'preview'],
    ['an earlier phase', '/chambers/1', /"COMMITTED"/, '"ALLOCATE_REVEAL"', 'views'],
    ['another time', '/chambers/1', /"now":"\d{4}/, '"now":"1999', 'views'],
    ['a member', '/chambers/1', /did:key:z6/, 'did:key:z7', 'views'],
    ['a committed root', '/chambers/1', /"merkleRoot":"0x../, '"merkleRoot":"0xff', 'views'],
    ['a backer', '/chambers/1/ideas', /"backers":1/, '"backers":2', 'views'],
    ['an idea more', '/chambers/1/ideas', /\]$/, ',{"ideaId":"idea-2"}]', 'views'],
    ['an allocation', '/chambers/1/allocations', /"bps":10000/, '"bps":9999', 'views'],
  ])('is caught with %s', async (_what, path, from, to, check) => {
    lie(path, from, to);
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf(check)).toBe('broken');
    expect(chambers()[0]?.counts.broken).toBe(1);
  });

  test('is caught with a phase that does not match the clock', async () => {
    lie('/chambers/2', /"phase":"LOBBY"/, '"phase":"PROPOSAL"');
    expect(await run({ chamber: 2 })).toBe(3);
    expect(verdictOf('views')).toBe('broken');
  });

  test('is caught with a log that ends early', async () => {
    const isEarly = (line: string) => line !== '' && JSON.parse(line).eventId <= 4;
    const early = (text: string) =>
      text
        .split('\n')
        .filter(isEarly)
        .map((line) => `${line}\n`)
        .join('');
    between.lie = (path, text) => (path.includes('/events') ? early(text) : text);
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('preview')).toBe('broken');
  });

  test('is caught when it withholds a view', async () => {
    lie('/chambers/1/ideas', /^.*$/, 'Nothing to see here');
    expect(await run({ chamber: 1 })).toBe(3);
    expect(verdictOf('views')).toBe('broken');
  });
});

describe('a log that is not what the chain holds', () => {
  test.each([
    ['blockNumber', /"blockNumber":\d+/, '"blockNumber":999'],
    ['committedAt', /("committedAt":"\d\d\d)\d/, '$19'],
    ['graduatedAt', /("graduatedAt":"\d\d\d)\d/, '$19'],
  ])('is caught with another %s', async (_what, from, to) => {
    const path = join(folder, 'altered.ndjson');
    const text = await (await fetch(`${stage.baseUrl}/chambers/1/events`)).text();
    writeFileSync(path, text.replace(from, to));
    expect(await run({ target: path, ...ofChain() })).toBe(3);
    expect(verdictOf('receipts')).toBe('broken');
  });

  test('is caught when its root is another', async () => {
    expect(await run({ target: SAMPLE, ...ofChain() })).toBe(3);
    expect(['contract', 'receipts'].map(verdictOf)).toEqual(['broken', 'broken']);
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
    ['an empty file', '', 'it is empty, there is nothing to audit'],
    ['text', 'Dear auditor,\n', 'it contains no event of a chamber: line 1 is not JSON'],
    ['one line torn', '{"chamberId":1,', 'it contains no event of a chamber: line 1 is torn'],
    ['JSON of something else', '{"name":"x"}\n', 'line 1 has no type: it is not an event record'],
    [
      'an agent’s account',
      agent,
      'line 1 is of type agent.registered: it belongs to an agent’s account, not to a chamber',
    ],
  ])('%s ends with one sentence and exit code 2', async (_what, text, sentence) => {
    const target = file(text);
    expect(await run({ target, json: false })).toBe(2);
    expect(complained).toContain(`usage: ${target}: `);
    expect(complained).toContain(sentence);
    expect(complained).not.toContain('\n');
    expect(printed).toBe('');
  });

  test.each([
    ['a missing file', { target: '/nowhere/chamber.ndjson' }, 'file not found'],
    ['a directory', { target: '/' }, 'it is a directory, not a file'],
    [
      'a registry without a chain',
      { target: SAMPLE, registry: `0x${'11'.repeat(20)}` },
      '--rpc and --registry go together',
    ],
    [
      'a registry that is not an address',
      { target: SAMPLE, rpc: 'http://x', registry: '0x11' },
      '--registry must be an EVM address',
    ],
    ['a missing chamber', { chamber: 9 }, 'returned 404: chamber not found'],
  ])('%s ends with exit code 2', async (_what, args, sentence) => {
    expect(await run(args)).toBe(2);
    expect(JSON.parse(complained)).toEqual({ error: 'usage', detail: expect.stringContaining(sentence), exitCode: 2 });
  });

  test('a registry address without a contract ends with exit code 2', async () => {
    expect(await run({ target: SAMPLE, ...ofChain(), registry: `0x${'11'.repeat(20)}` })).toBe(2);
    expect(complained).toContain('the chain has no ChamberRegistry at');
  });

  test('lines of another chamber than the one asked for are broken', async () => {
    expect(await run({ target: SAMPLE, chamber: 2 })).toBe(3);
    expect(verdictOf('chamber')).toBe('broken');
    expect(printed).toContain('22 lines belong to chamber 1, not to chamber 2');
  });

  test('lines of two logs are broken where they meet', async () => {
    const theirs = await (await fetch(`${stage.baseUrl}/chambers/1/events?after=3`)).text();
    const ours = readFileSync(SAMPLE, 'utf8').split('\n').slice(0, 3).join('\n');
    expect(await run({ target: file(`${ours}\n${theirs}`) })).toBe(3);
    expect(verdictOf('chain')).toBe('broken');
    expect(chambers()[0]?.brokenEvents).toEqual(expect.arrayContaining([3, 4]));
  });

  test('a service or a chain that is away ends with exit code 6', async () => {
    const away = `http://127.0.0.1:${await freePort()}`;
    expect(await run({ target: away })).toBe(6);
    expect(await run({ target: SAMPLE, rpc: away, registry: chain.registryAddress })).toBe(6);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
