// Audits hostile services, chains and files: each audit ends with one sentence and exit code 2 or 6.
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type AuditArguments, auditMain } from '../../src/audit/main.ts';

const SAMPLE = new URL('../../fixtures/logs/chamber.ndjson', import.meta.url).pathname;
const lines = readFileSync(SAMPLE, 'utf8');
const page = lines.split('\n')[0]?.concat('\n').repeat(1_000) ?? '';

/** Low limits, which hostile responses exceed at once. */
const LIMITS = { lineBytesMax: 100_000, linesMax: 2_500, responseBytesMax: 100_000, timeoutSeconds: 60 };
const SILENT = { ...LIMITS, timeoutSeconds: 0.2 };

let server: Server;
let url: string;
let folder: string;
/** Responds to a request; the path has no query. */
let respond: (path: string, response: ServerResponse) => void;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hostile-'));
  server = createServer((request, response) => {
    response.setHeader('Connection', 'close');
    respond((request.url ?? '').split('?')[0] ?? '', response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

async function run(args: Partial<AuditArguments>): Promise<{ readonly exitCode: number; readonly sentence: string }> {
  let sentence = '';
  const error = vi.spyOn(console, 'error').mockImplementation((text) => {
    sentence += text;
  });
  try {
    return { exitCode: await auditMain({ target: url, json: false, limits: LIMITS, ...args }), sentence };
  } finally {
    error.mockRestore();
    server.closeAllConnections();
  }
}

/** Repeats the text forever, as fast as the client reads. */
function endlessly(response: ServerResponse, text: string, status = 200): void {
  response.writeHead(status);
  const push = () => {
    while (!response.destroyed && response.write(text));
    if (!response.destroyed) response.once('drain', push);
  };
  push();
}

const bomb = gzipSync(Buffer.alloc(50_000_000, ' '));
const GZIP = { 'Content-Encoding': 'gzip' };

const limitsFor = ({ source }: RegExp) => ({ limits: /silent|timed out/.test(source) ? SILENT : LIMITS });

type Hostile = (response: ServerResponse, path: string) => void;
const LIST: readonly (readonly [string, Hostile, number, RegExp])[] = [
  ['never ends', (response) => endlessly(response, '[{"chamberId":1},'), 6, /longer than 100,000 bytes/],
  ['is a gzip bomb', (response) => response.writeHead(200, GZIP).end(bomb), 6, /longer than 100,000 bytes/],
  ['is damaged gzip', (response) => response.writeHead(200, GZIP).end('no gzip'), 6, /can’t be reached/],
  [
    'redirects',
    (response) => response.writeHead(302, { Location: 'http://other.test/' }).end(),
    2,
    /redirects to http:\/\/other\.test\//,
  ],
  ['redirects forever', (response, path) => response.writeHead(307, { Location: path }).end(), 2, /redirects to/],
  ['does not arrive', () => {}, 6, /silent for 0\.2 s/],
  ['stalls in the middle', (response) => response.writeHead(200).write('['), 6, /silent for 0\.2 s/],
  [
    'is cut off',
    (response) => response.writeHead(200, { 'Content-Length': 99 }).write('[', () => response.destroy()),
    6,
    /can’t be reached/,
  ],
  ['is an endless error', (response) => endlessly(response, 'x'.repeat(1_000), 500), 6, /longer than/],
  ['is an HTML page', (response) => response.end('<html></html>'), 2, /is not JSON/],
  ['is empty', (response) => response.writeHead(204).end(), 2, /returned 204/],
  ['is a number', (response) => response.end('1'), 2, /without an id/],
  ['has text as chamber ids', (response) => response.end('[{"chamberId":"1"}]'), 2, /without an id/],
  ['is nested deeply', (response) => response.end('['.repeat(50_000)), 2, /is not JSON/],
];

describe('a hostile list of chambers', () => {
  test.each(LIST)('an audit ends if a list of chambers %s', async (_what, hostile, exitCode, sentence) => {
    respond = (path, response) => hostile(response, path);
    const result = await run(limitsFor(sentence));
    expect(result).toEqual({ exitCode, sentence: expect.stringMatching(sentence) });
    expect(result.sentence).not.toContain('\n');
  });

  test('an audit ends if a list of chambers drips forever', async () => {
    respond = (_path, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(timer));
    };
    const limits = { ...LIMITS, timeoutSeconds: 0.05 };
    expect(await run({ limits })).toEqual({
      exitCode: 6,
      sentence: expect.stringMatching(/timed out after 1000 ms|silent/),
    });
  });
});

const LINES: readonly (readonly [string, Hostile, number, RegExp])[] = [
  ['are one endless line', (response) => endlessly(response, 'x'.repeat(10_000)), 2, /line of more than 100,000 bytes/],
  ['are a gzip bomb', (response) => response.writeHead(200, GZIP).end(bomb), 2, /line of more than 100,000 bytes/],
  ['are endless', (response) => endlessly(response, page), 2, /page of its events has more than 1,000 lines/],
  ['fill page after page', (response) => response.end(page), 2, /more than 2,500 lines/],
  ['are empty', (response) => endlessly(response, '\n'.repeat(10_000)), 2, /no chamber event/],
  ['are numbers', (response) => response.end('1\n2\n'), 2, /no chamber event: line 1 is not a JSON object/],
  ['stop', (response) => response.writeHead(200).write(lines.slice(0, 5_000)), 6, /silent for 0\.2 s/],
];

describe('hostile lines of a service', () => {
  test.each(LINES)('an audit ends if the lines of a service %s', async (_what, hostile, exitCode, sentence) => {
    respond = (path, response) => hostile(response, path);
    expect(await run({ chamber: 1, ...limitsFor(sentence) })).toEqual({
      exitCode,
      sentence: expect.stringMatching(sentence),
    });
  });
});

const RPC: readonly (readonly [string, Hostile, RegExp])[] = [
  ['never ends', (response) => endlessly(response, ' '.repeat(100_000)), /longer than 100,000 bytes/],
  ['is a gzip bomb', (response) => response.writeHead(200, GZIP).end(bomb), /longer than 100,000 bytes/],
  ['redirects', (response) => response.writeHead(302, { Location: 'http://other.test/' }).end(), /status 302/],
  ['does not arrive', () => {}, /timed out after 200 ms/],
  ['is an HTML page', (response) => response.end('<html></html>'), /failed/],
  ['is a number', (response) => response.end('1'), /no ChamberRegistry/],
  [
    'has the wrong type',
    (response) => response.end('{"jsonrpc":"2.0","id":1,"result":[5]}'),
    /failed|no ChamberRegistry/,
  ],
];

describe('a hostile chain', () => {
  test.each(RPC)('an audit ends if the response of a chain %s', async (_what, hostile, sentence) => {
    respond = (path, response) => hostile(response, path);
    const registries = ['0x5FbDB2315678afecb367f032d93F642f64180aa3'];
    const result = await run({ target: SAMPLE, rpc: url, registries, ...limitsFor(sentence) });
    expect([2, 6]).toContain(result.exitCode);
    expect(result.sentence).toMatch(sentence);
    expect(result.sentence).not.toContain('\n');
  });
});

describe('a hostile file', () => {
  test('a file with a line of 300 MB is read up to 4 MiB', async () => {
    const path = join(folder, 'long');
    writeFileSync(path, '');
    truncateSync(path, 300_000_000);
    const result = await run({ target: path, limits: {} });
    expect(result).toEqual({ exitCode: 2, sentence: expect.stringContaining('line of more than 4,194,304 bytes') });
  });

  test('an endless file is read up to 4 MiB', async () => {
    expect(await run({ target: '/dev/zero', limits: {} })).toMatchObject({ exitCode: 2 });
  });

  test('a file is read up to the maximum number of lines of a chamber', async () => {
    const path = join(folder, 'many');
    writeFileSync(path, page.repeat(3));
    expect(await run({ target: path })).toEqual({
      exitCode: 2,
      sentence: expect.stringContaining('--max-lines allows more'),
    });
  });
});
