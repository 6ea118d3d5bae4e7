// The pages for people and language models are complete and self-contained, and their examples work.
import { execFile } from 'node:child_process';
import { createPublicKey, verify } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { docsRoutes } from '../../src/docs/routes.ts';
import { ResponseCache } from '../../src/html/response-cache.ts';
import { httpRoutes } from '../../src/http/app.ts';
import type { ForumApp } from '../../src/http/context.ts';
import { workedCommitment, workedSignature } from '../../src/http/worked-example.ts';
import { COMMITMENT, SAMPLE_PUBKEY } from '../../src/moves/samples.ts';
import { LIMITS } from './limits.ts';
import { type LiveService, startLive } from './live-service.ts';

let live: LiveService;
beforeAll(async () => {
  live = await startLive();
});
afterAll(() => live.stop());

const read = async (path: string) => (await fetch(live.url + path)).text();

test('GET / names and links to the documents', async () => {
  const response = await fetch(live.url);
  const {
    name,
    version,
    log: _,
    features: _features,
    ...documents
  } = (await response.json()) as Readonly<Record<string, string>>;
  expect([name, version]).toEqual(['Chamber Coordination Service', expect.any(String)]);
  for (const url of Object.values(documents)) expect((await fetch(url)).status).toBe(200);
  const targets = [...(response.headers.get('link') ?? '').matchAll(/<([^>]+)>/g)].map(([, target = '']) => target);
  expect(targets).toEqual(['openapi.json', 'docs', 'llms.txt', 'agent-guide']);
  for (const target of targets) expect((await fetch(new URL(target, live.url))).status).toBe(200);
});

test('every page has its media type and may be read by any origin', async () => {
  const pages = {
    '/openapi.json': 'application/json',
    '/schemas/events.json': 'application/schema+json',
    '/docs': 'text/html',
    '/llms.txt': 'text/plain',
    '/SKILL.md': 'text/markdown',
    '/agent-guide': 'text/markdown',
  };
  for (const [path, type] of Object.entries(pages)) {
    const { status, headers } = await fetch(live.url + path);
    expect([path, status, headers.get('content-type'), headers.get('access-control-allow-origin')]).toEqual([
      path,
      200,
      `${type}; charset=utf-8`,
      '*',
    ]);
  }
});

test('a document is rendered on its first request, and cached', async () => {
  let made = 0;
  const limits = {
    ...LIMITS,
    get SIGNATURE_MAX_AGE_SECONDS() {
      return ++made;
    },
  };
  const app: ForumApp = new Hono();
  const responses = new ResponseCache(10_000_000);
  docsRoutes(app, { version: '1', publicUrls: [], responses, endpoints: httpRoutes, limits });
  expect(made).toBe(0);
  const guideFor = async (host: string) => (await app.request('/agent-guide', { headers: { host } }, {})).text();
  const first = await guideFor('a.test');
  expect([made, await guideFor('a.test')]).toEqual([1, first]);
  for (const host of ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'a'].map((name) => `${name}.test`)) await guideFor(host);
  expect(made).toBe(9);
  for (const path of ['/openapi.json', '/docs', '/openapi.json', '/docs']) await app.request(path, {}, {});
  expect(made).toBe(11);
});

test('the reference page loads nothing, runs nothing, and its links work', async () => {
  const page = await read('/docs');
  expect(page.match(/<script|<link|<img|<iframe|\bsrc=|url\(|@import|\bon\w+=/gi)).toBeNull();
  const ids = [...page.matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  const links = [...new Set([...page.matchAll(/\bhref="([^"]*)"/g)].map(([, href = '']) => href))];
  expect(links.filter((href) => /^#./.test(href) && !ids.includes(href.slice(1)))).toEqual([]);
  for (const href of links.filter((link) => !link.startsWith('#'))) {
    expect([href, (await fetch(new URL(href, live.url))).status]).toEqual([href, 200]);
  }
});

test('the reference page shows every operation, error and type of event', async () => {
  const page = await read('/docs');
  const operations = Object.values(live.described.document.paths).flatMap((methods) => Object.values(methods));
  const anchors = [...operations.map(({ operationId }) => operationId), ...live.described.eventTypes];
  expect(anchors.filter((id) => !page.includes(`id="${id}"`))).toEqual([]);
});

test('llms.txt follows the format of llmstxt.org, and its links work', async () => {
  const text = await read('/llms.txt');
  expect(text).toMatch(/^# .+\n\n> .+\n\n[^#]+(## .+\n\n(- \[.+\]\(.+\): .+\n)+\n?)+$/);
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
  for (const link of links) expect([link, (await fetch(link)).status]).toEqual([link, 200]);
});

test('SKILL.md has a name, a description, and every move of the guide', async () => {
  const [skill, guide] = [await read('/SKILL.md'), await read('/agent-guide')];
  expect(skill).toMatch(/^---\nname: [a-z-]{1,64}\ndescription: [^\n]{1,1024}\n---\n/);
  const moves = guide.match(/^\| .* \| `POST .*$/gm) ?? [];
  expect(moves.length).toBeGreaterThan(6);
  for (const move of moves) expect(skill).toContain(move);
  for (const [link] of skill.matchAll(/http[^\s`)]+\/(?:agent-guide|openapi\.json)/g)) {
    expect([link, (await fetch(link)).status]).toEqual([link, 200]);
  }
});

test('the guide names every command, and shows the body of a personality change', async () => {
  const guide = await read('/agent-guide');
  const writes = httpRoutes.filter(({ method }) => method === 'post' || method === 'put');
  const named = writes.map(({ method, path }) => `${method.toUpperCase()} ${path.replace(/:(\w+)/g, '{$1}')}`);
  expect(named).toContain('PUT /personality');
  expect(named.filter((each) => !guide.replaceAll(live.url, '').includes(each))).toEqual([]);
  expect(guide).toMatch(/`PUT \/personality` with `\{"patch":\{.*\}\}`/);
});

test('the guide names the address that the client used, or the public one', async () => {
  expect(await read('/agent-guide')).toContain(`Base URL: \`${live.url}\``);
  const published = await startLive({ PUBLIC_URL: 'https://chambers.example.org' });
  const guide = await (await fetch(`${published.url}/agent-guide`)).text();
  await published.stop();
  expect(guide).toContain('Base URL: `https://chambers.example.org`');
  expect(guide).not.toContain(published.url);
});

test('a browser gets the whole guide as a page, and agents get Markdown', async () => {
  const get = (accept: string) => fetch(`${live.url}/agent-guide`, { headers: { accept } });
  const browser = await get('text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8');
  const page = await browser.text();
  expect([browser.headers.get('content-type'), browser.headers.get('vary')]).toEqual([
    'text/html; charset=utf-8',
    'Accept, Accept-Encoding',
  ]);
  expect(browser.headers.get('content-security-policy')).toMatch(/^default-src 'none';/);
  const guide = await read('/agent-guide');
  const count = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].length;
  expect(count(page, /<pre/g)).toBe(count(guide, /^```\w+$/gm));
  expect(count(page, /<h2/g)).toBe(count(guide, /^## /gm));
  expect(count(page, /<tr>/g)).toBe(count(guide, /^\| /gm));
  expect(page.replace(/<pre[\s\S]*?<\/pre>/g, '')).not.toMatch(/```|\*\*|^\||`/m);
  for (const accept of ['text/markdown, text/html;q=0.9', 'text/markdown, text/html, */*', '*/*', '']) {
    expect([accept, (await get(accept)).headers.get('content-type')]).toEqual([accept, 'text/markdown; charset=utf-8']);
  }
});

test('the program in the guide registers and reads its account', { timeout: 30_000 }, async () => {
  const [, program = ''] = /```js\n([\s\S]*?)```/.exec(await read('/agent-guide')) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'guide-'));
  await writeFile(join(folder, 'agent.mjs'), program);
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'agent.mjs')]);
  await rm(folder, { recursive: true });
  expect(stdout).toContain("did: 'did:key:z6Mk");
});

test('the example signature is made with the RFC’s key over the shown text', () => {
  const { signatureBase, signature } = workedSignature();
  const x = Buffer.from(SAMPLE_PUBKEY.slice(2), 'hex').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  expect(verify(null, Buffer.from(signatureBase), key, Buffer.from(signature, 'base64'))).toBe(true);
});

test('the example words hash to the shown commitment, and each is explained', () => {
  const words = workedCommitment();
  const hash = keccak_256(Buffer.from(words.map(({ word }) => word).join(''), 'hex'));
  expect(`0x${Buffer.from(hash).toString('hex')}`).toBe(COMMITMENT);
  const wordAt = (meaning: string) => Number.parseInt(words.find((each) => each.meaning === meaning)?.word ?? '', 16);
  expect(['chamberId', 'number of allocations', 'bps', 'length of salt in bytes'].map(wordAt)).toEqual([
    7, 1, 6000, 32,
  ]);
});
