// A database of release 0.1.0 stays sound, even after a later commit has opened it: stricter rules apply only to new requests.
import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

import { auditFile, auditService } from '../../src/audit/audit.ts';
import { type Running, sharedService } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const FOLDER = new URL('../../fixtures/logs/release-0.1/', import.meta.url);

interface Lines {
  readonly count: number;
  readonly sha256: string;
}

interface Recorded {
  readonly request: {
    readonly method: string;
    readonly target: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | null;
  };
  readonly answer: { readonly status: number; readonly body: string };
}

interface Expected {
  readonly logId: string;
  readonly chambers: readonly {
    readonly chamberId: number;
    readonly lines: Lines;
    readonly merklePreview: object;
    readonly view: Readonly<Record<string, unknown>>;
    readonly ideas: readonly object[];
    readonly allocations: unknown;
    readonly auditExitCode: number;
  }[];
  readonly accounts: readonly { readonly did: string; readonly lines: Lines }[];
  readonly requests: readonly Recorded[];
}

/** Hosts that release 0.1 accepted although no URL parser accepts them; only the Host header causes their rejection. */
const REJECTED_HOSTS = new Set([
  '256.256.256.256',
  '1.2.3.4.5',
  'foo.256',
  'a.b.1',
  '999999999999',
  'xn--',
  '..',
  'a..b',
]);
const HOST_MALFORMED = { status: 400, body: expect.stringContaining('the Host header is missing or malformed') };

const expected: Expected = JSON.parse(readFileSync(new URL('expected.json', FOLDER), 'utf8'));

async function linesOf({ service }: Running, stream: number | string): Promise<Lines> {
  const { ndjson, count } = await service.forum.store.log.readPage(stream, 0, 10_000);
  return { count, sha256: createHash('sha256').update(ndjson).digest('hex') };
}

async function read({ url }: Running, path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(url + path)).json()) as Record<string, unknown>;
}

function send({ url }: Running, { method, target, headers, body }: Recorded['request']): Promise<Recorded['answer']> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ hostname, port, method, path: target, headers }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode ?? 0, body: text });
    });
    outgoing.on('error', reject).end(body ?? undefined);
  });
}

/** A member that a later release added to the response to a creation. */
const WARNINGS = /,"warnings":\[[^\]]*\]/;

describe.each([
  ['release 0.1.0', 'release-0.1'],
  ['release 0.1.0 that commit 1500e52 has opened', 'schema-7'],
])('a database of %s', (_title, folder) => {
  const copy = mkdtempSync(join(tmpdir(), 'release-'));
  const path = join(copy, 'chambers.db');
  copyFileSync(new URL(`../${folder}/chambers.db`, FOLDER), path);
  // Hooks run in reverse order, so the service has already stopped.
  afterAll(() => rmSync(copy, { recursive: true }));
  const running = sharedService({ DATABASE_PATH: path });

  it('an old database keeps its log id and every line, byte for byte', async () => {
    expect(running.service.forum.store.log.logId).toBe(expected.logId);
    for (const { chamberId, lines } of expected.chambers) expect(await linesOf(running, chamberId)).toEqual(lines);
    for (const { did, lines } of expected.accounts) expect(await linesOf(running, did)).toEqual(lines);
  });

  it('an old database keeps its roots and views', async () => {
    for (const { chamberId, merklePreview, view, ideas, allocations } of expected.chambers) {
      expect(await read(running, `/chambers/${chamberId}/merkle-preview`)).toEqual(merklePreview);
      // With turns of a year, the member in turn depends on the date.
      const { currentTurnAgent: _, ideas: viewedIdeas, ...rest } = view;
      expect(await read(running, `/chambers/${chamberId}`)).toMatchObject(rest);
      expect(await read(running, `/chambers/${chamberId}`)).toMatchObject({ ideas: viewedIdeas });
      expect(await read(running, `/chambers/${chamberId}/ideas`)).toMatchObject(ideas);
      expect(await read(running, `/chambers/${chamberId}/allocations`)).toEqual(allocations);
    }
  });

  it('a service with an old database returns the first response to every retry with a valid Host, and writes nothing', async () => {
    for (const { request, answer } of expected.requests) {
      const { Host = '' } = request.headers;
      const { status, body } = await send(running, request);
      expect({ status, body: body.replace(WARNINGS, '') }).toEqual(REJECTED_HOSTS.has(Host) ? HOST_MALFORMED : answer);
    }
    for (const { chamberId, lines } of expected.chambers) expect(await linesOf(running, chamberId)).toEqual(lines);
  });

  it('an old database passes the same audits', async () => {
    const exported = join(temporaryFolder(), 'chamber.ndjson');
    for (const { chamberId, auditExitCode } of expected.chambers) {
      writeFileSync(exported, (await running.service.forum.store.log.readPage(chamberId, 0, 10_000)).ndjson);
      // The old service could exceed today's limits. Chambers with requests to several hosts are undecided.
      const policy = { maxAgeSeconds: 86_400, maxSkewSeconds: 86_400 };
      const { verdict } = await auditFile(exported, { chamberId, policy });
      expect([chamberId, verdict === 'broken']).toEqual([chamberId, auditExitCode !== 0]);
    }
  });

  it('an old database is audited with its accounts, of which some lines need not be published', async () => {
    const policy = { maxAgeSeconds: 86_400, maxSkewSeconds: 86_400, allowUnsigned: true };
    const { chambers } = await auditService(running.url, { policy, now: running.clock.read });
    for (const { chamberId, checks } of chambers) {
      const registration = checks.find(({ name }) => name === 'registration');
      expect([chamberId, registration?.findings]).toEqual([chamberId, []]);
    }
    expect(chambers.length).toBeGreaterThanOrEqual(expected.chambers.length);
  });

  it('a service with an old database publishes no account line whose evidence covers an e-mail address', async () => {
    for (const { did, lines } of expected.accounts) {
      const { ndjson } = await running.service.forum.store.log.readPage(did, 0, 10_000);
      const stored = ndjson.toString().split('\n').slice(0, -1);
      const lastPrivate = stored.findLastIndex((line) => JSON.parse(line).request?.body === null);
      const published = await (await fetch(`${running.url}/agents/${did}/events`)).text();
      expect([lines.count, published.split('\n').slice(0, -1)]).toEqual([stored.length, stored.slice(lastPrivate + 1)]);
      expect(published).not.toContain('"body":null');
    }
  });

  it('a service with an old database accepts a cursor of that release, and resumes after it', async () => {
    const { chamberId, lines } = expected.chambers[0] as Expected['chambers'][number];
    const path = `/chambers/${chamberId}/events?after=${lines.count - 1}&log=${expected.logId}`;
    const text = await (await fetch(running.url + path)).text();
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).eventId),
    ).toEqual([lines.count]);
  });
});
