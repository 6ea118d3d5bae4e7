// Client, Python client and auditor read history in the pages that all readers have in common, so that a cache in front of the service
// has them. The cache here keeps what is immutable, as nginx does in the deploy kit.
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
/** The root of a chamber that is over is one more event. */
const EVENTS = 2_499;

interface Page {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Cache {
  readonly url: string;
  /** The base URL of the service behind it. */
  origin: string;
  /** The pages by path and query. */
  readonly pages: Map<string, Page>;
  /** The pages that the service was asked for, since this was called last. */
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

/** A chamber with so many events and the root, all of them over. */
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
  it('reads whole pages, and asks for nothing after the last one', async () => {
    chamberId = await settled(EVENTS);
    const forum = new ForumClient(cache.url);
    expect(await countOf(forum.history(chamberId))).toBe(EVENTS + 1);
    // It learns the log from the first response.
    expect(cache.asked()).toEqual([page(0, 1_000, ''), page(1_000), page(2_000)]);
    expect(await countOf(forum.history(chamberId))).toBe(EVENTS + 1);
    expect(await countOf(new ForumClient(cache.url).history(chamberId))).toBe(EVENTS + 1);
    expect(cache.asked()).toEqual([page(0), page(0, 1_000, '')]);
  });

  it('asks for nothing after a last page that is full', async () => {
    chamberId = await settled(1_999);
    expect(await countOf(new ForumClient(cache.url).history(chamberId))).toBe(2_000);
    expect(cache.asked()).toEqual([page(0, 1_000, ''), page(1_000)]);
  });

  it('reads up to the next whole page first', async () => {
    chamberId = await settled(EVENTS);
    const forum = new ForumClient(cache.url);
    expect(await countOf(forum.history(chamberId, { after: 1_500 }))).toBe(EVENTS + 1 - 1_500);
    expect(cache.asked()).toEqual([page(1_500, 500, ''), page(2_000)]);
  });

  it('replays whole pages before it follows a long chamber', async () => {
    chamberId = await settled(EVENTS);
    const forum = new ForumClient(running.url, {
      // Its stream comes from the service itself.
      fetch: (url, init) => fetch(url.replace(running.url, cache.url), init),
    });
    const phases: string[] = [];
    for await (const { phase, state } of forum.watch(chamberId)) phases.push(`${phase} ${state.lastEventId}`);
    expect(phases).toEqual([`COMMITTED ${EVENTS + 1}`]);
    expect(cache.asked().filter((path) => path.includes('/events?'))).toEqual([page(0), page(1_000)]);
  });

  it('reads another log from its beginning', async () => {
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
  it('reads whole pages, and asks the service itself for what came after the last one', async () => {
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
  ])('gets the lines that were added after a last page %s came into the cache', async (_, events) => {
    chamberId = await settled(events);
    await countOf(new ForumClient(cache.url).history(chamberId));
    const [path = '', last] = [...cache.pages].at(-1) ?? [];
    if (last === undefined) throw new Error('there is no page in the cache');
    const older = last.body.slice(0, last.body.lastIndexOf('\n', last.body.length - 2) + 1);
    cache.pages.set(path, { ...last, body: older });
    expect(await countOf(new AuditedService(cache.url).lines(chamberId, 0))).toBe(events + 1);
  });

  it('says that the log was replaced during the audit', async () => {
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
