// The clients and the auditor read history in the pages that all readers share, so that a cache in front of the service can serve them.
// The cache here stores immutable responses, as nginx does in the deploy kit.
import { beforeEach, describe, expect, it } from 'vitest';
import { AuditedService } from '../../src/audit/service/service-reader.ts';
import { ForumClient } from '../../src/client/index.ts';
import { IMMUTABLE_TEXTS } from '../../src/vocabulary/endpoint.ts';
import { recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { appendDebates } from '../kit/debates.ts';
import { python, runPython } from '../kit/python.ts';
import { serve } from '../kit/serve.ts';
import { debating, type Running, run } from '../kit/service.ts';

const SLOW = { timeout: 120_000 };
/** A chamber that is over has one more event, the root. */
const EVENTS = 2_499;

interface Page {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Cache {
  readonly url: string;
  /** The base URL of the service behind the cache. */
  origin: string;
  /** The cached pages by path and query. */
  readonly pages: Map<string, Page>;
  /** The pages requested from the service since the last call. */
  readonly asked: () => readonly string[];
}

async function openCache({ url: origin }: Running): Promise<Cache> {
  let asked: string[] = [];
  const pages: Cache['pages'] = new Map();
  const forward = async (path: string): Promise<Page> => {
    asked.push(path.replace(/log=\w+/, 'log'));
    const response = await fetch(cache.origin + path);
    const { 'content-encoding': _, 'content-length': _length, ...headers } = Object.fromEntries(response.headers);
    return { status: response.status, headers, body: await response.text() };
  };
  const url = await serve(async ({ url: path = '' }, response) => {
    const page = pages.get(path) ?? (await forward(path));
    if (page.headers['cache-control'] === IMMUTABLE_TEXTS) pages.set(path, page);
    response.writeHead(page.status, page.headers).end(page.body);
  });
  const cache: Cache = {
    url,
    origin,
    pages,
    asked: () => {
      const paths = asked;
      asked = [];
      return paths;
    },
  };
  return cache;
}

let running: Running;
let cache: Cache;
let chamberId: number;

/** Plays a chamber to its end, with the given number of events including the root. */
async function settled(events: number): Promise<number> {
  const { by, id } = await debating(running);
  await appendDebates(running, { did: by.did, chamberId: id, count: events - 2 });
  running.clock.advance(5 * HOUR);
  await recordCommit(running.service.forum, id);
  return id;
}

beforeEach(async () => {
  running = await run();
  cache = await openCache(running);
});

const page = (after: number, limit = 1_000, log = 'log&') =>
  `/chambers/${chamberId}/events?${log}after=${after}&limit=${limit}`;

async function countOf(lines: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of lines) count++;
  return count;
}

describe('the client', SLOW, () => {
  it('the client reads whole pages, and requests nothing after the last page', async () => {
    chamberId = await settled(EVENTS);
    const forum = new ForumClient(cache.url);
    expect(await countOf(forum.history(chamberId))).toBe(EVENTS + 1);
    // The first response names the log.
    expect(cache.asked()).toEqual([page(0, 1_000, ''), page(1_000), page(2_000)]);
    expect(await countOf(forum.history(chamberId))).toBe(EVENTS + 1);
    expect(await countOf(new ForumClient(cache.url).history(chamberId))).toBe(EVENTS + 1);
    expect(cache.asked()).toEqual([page(0), page(0, 1_000, '')]);
  });

  it('the client requests nothing after a full last page', async () => {
    chamberId = await settled(1_999);
    expect(await countOf(new ForumClient(cache.url).history(chamberId))).toBe(2_000);
    expect(cache.asked()).toEqual([page(0, 1_000, ''), page(1_000)]);
  });

  it('the client first reads up to the beginning of a whole page', async () => {
    chamberId = await settled(EVENTS);
    const forum = new ForumClient(cache.url);
    expect(await countOf(forum.history(chamberId, { after: 1_500 }))).toBe(EVENTS + 1 - 1_500);
    expect(cache.asked()).toEqual([page(1_500, 500, ''), page(2_000)]);
  });

  it('the client replays whole pages before it follows a long chamber', async () => {
    chamberId = await settled(EVENTS);
    const forum = new ForumClient(running.url, {
      // The stream comes directly from the service.
      fetch: (url, init) => fetch(url.replace(running.url, cache.url), init),
    });
    const phases: string[] = [];
    for await (const { phase, state } of forum.watch(chamberId)) phases.push(`${phase} ${state.lastEventId}`);
    expect(phases).toEqual([`COMMITTED ${EVENTS + 1}`]);
    expect(cache.asked().filter((path) => path.includes('/events?'))).toEqual([page(0), page(1_000)]);
  });

  it('the client reads a different log from the beginning', async () => {
    chamberId = await settled(3);
    const forum = new ForumClient(cache.url);
    expect(await countOf(forum.history(chamberId))).toBe(4);
    running = await run();
    cache.origin = running.url;
    await settled(6);
    expect(await countOf(forum.history(chamberId))).toBe(7);
  });
});

describe('the auditor', SLOW, () => {
  it('the auditor reads whole pages, and requests later lines from the service itself', async () => {
    chamberId = await settled(EVENTS);
    const audited = new AuditedService(cache.url);
    for (const first of [page(0, 1_000, ''), page(0)]) {
      expect(await countOf(audited.lines(chamberId, 0))).toBe(EVENTS + 1);
      const pages = first === page(0) ? [first] : [first, page(1_000), page(2_000)];
      expect(cache.asked()).toEqual([...pages, page(2_500, 500, '')]);
    }
  });

  it.each([
    ['that is not full', 1_499],
    ['that is empty', 2_000],
  ])('the auditor gets lines that were added after a last page %s was cached', async (_, events) => {
    chamberId = await settled(events);
    await countOf(new ForumClient(cache.url).history(chamberId));
    const [path = '', last] = [...cache.pages].at(-1) ?? [];
    if (last === undefined) throw new Error('there is no page in the cache');
    const older = last.body.slice(0, last.body.lastIndexOf('\n', last.body.length - 2) + 1);
    cache.pages.set(path, { ...last, body: older });
    expect(await countOf(new AuditedService(cache.url).lines(chamberId, 0))).toBe(events + 1);
  });

  it('the auditor reports that the log was replaced during the audit', async () => {
    chamberId = await settled(1_200);
    const lines = new AuditedService(cache.url).lines(chamberId, 0);
    await lines.next();
    running = await run();
    cache.origin = running.url;
    await settled(3);
    await expect(countOf(lines)).rejects.toThrow('its log was replaced during the audit');
  });
});

const READ = `
import sys
from chambers import Reader
reader, chamber_id = Reader(sys.argv[1]), int(sys.argv[2])
print(sum(1 for _ in reader.history(chamber_id)))
next(reader.history(chamber_id))
`;

python('the Python client reads whole pages too', SLOW, async () => {
  chamberId = await settled(1_199);
  expect(await runPython(READ, [cache.url, `${chamberId}`])).toBe('1200\n');
  expect(cache.asked()).toEqual([page(0, 1_000, ''), page(1_000), page(0)]);
});
