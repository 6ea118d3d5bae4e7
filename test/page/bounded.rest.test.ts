// Tests that the cost of a page is limited: without limits, 100 refinements of 60 KB make a page of 110 MB at every request.
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { openChamber } from '../kit/chambers.ts';
import { TestClock } from '../kit/clock.ts';
import { deepRefinement, FullLogWriter, MEMBERS } from '../kit/full-log.ts';
import { openTestStore } from '../kit/store.ts';
import { TestService } from '../kit/test-service.ts';

const BROWSER = { accept: 'text/html' };
const PAGE_BYTES_MAX = 2_500_000;
/** The comments have 60 KB each. */
const COMMENTS = 20;
/** Each character takes five characters of HTML. */
const LONGEST = '&'.repeat(8_192);

async function pageOf(
  service: TestService,
  id: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<Buffer> {
  const response = await service.app.request(`/chambers/${id}`, { headers: { ...BROWSER, ...headers } }, {});
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

async function fullService(comment: string, { count = COMMENTS, backed = 250 } = {}): Promise<TestService> {
  const [clock, store] = [new TestClock(), openTestStore(undefined)];
  const comments = { count, comment, refinement: deepRefinement() };
  await new FullLogWriter(store.log, clock.read()).writeChamber(1, { text: LONGEST, backed, comments });
  return new TestService({ clock, store });
}

/** As many members and ideas, of which the last comments are long. */
const COMMENTED = { count: 3, backed: 2 };

describe('the page of a chamber that is full of the longest texts', () => {
  it('the page of a chamber with the longest texts is truncated, and links to the omitted parts', async () => {
    const page = await pageOf(await fullService(LONGEST), 1);
    expect(page.length).toBeLessThan(PAGE_BYTES_MAX);
    const html = page.toString();
    expect(html).toMatch(/<p class="facts">\d+ ideas more: <a href="1\/ideas">/);
    expect(html).toMatch(/<p class="facts">\d+ members more: <a href="1\/allocations">/);
    expect(html).toMatch(/The last events, from number \d+\. <a href="1\/events">/);
    expect(html).toMatch(/ \[…\]<\/pre><p class="facts"><a href="1\/events\?after=\d+&amp;limit=1">/);
  });

  it('the page shows the last event, however long it is', async () => {
    const html = (await pageOf(await fullService('short', COMMENTED), 1)).toString();
    const last = 1 + MEMBERS * 4 + COMMENTED.count;
    expect(html).toContain(`id="e${last}"`);
  });

  it('a chamber’s page is rendered once for all readers, including later ones', async () => {
    const service = await fullService('short', COMMENTED);
    const reading = vi.spyOn(service.log, 'readPage');
    const first = await pageOf(service, 1);
    const reads = reading.mock.calls.length;
    const others = await Promise.all(Array.from({ length: 20 }, () => pageOf(service, 1)));
    expect(others.every((each) => each.equals(first))).toBe(true);
    service.clock.advance(5_000);
    const later = (await pageOf(service, 1)).toString();
    expect(reading.mock.calls.length).toBe(reads);
    expect(later.replace(/data-now="\d+"/, '')).toBe(first.toString().replace(/data-now="\d+"/, ''));
    expect(later).toContain(`data-now="${service.clock.read()}"`);
  });

  it('a chamber’s page is compressed for clients that accept gzip', async () => {
    const service = await fullService('short', COMMENTED);
    const compressed = await pageOf(service, 1, { 'accept-encoding': 'gzip' });
    expect(gunzipSync(compressed).equals(await pageOf(service, 1))).toBe(true);
  });
});

it('a page within the limits shows the whole current state', async () => {
  const service = new TestService();
  const by = await service.agent();
  const id = await openChamber(service, [by], { name: 'Small' });
  const before = (await pageOf(service, id)).toString();
  expect(before).not.toContain('more: <a');
  const other = await service.agent();
  await service.must('POST', `/chambers/${id}/join`, { by: other });
  const after = (await pageOf(service, id)).toString();
  expect(after).toContain(`title="${other.did}"`);
});

describe('a chamber of 256 ideas, each with 16 of the longest texts and a stance of every member on some', () => {
  const VERSIONS = 16;
  const POLLED = 32;

  async function amendedService(): Promise<TestService> {
    const [clock, store] = [new TestClock(), openTestStore(undefined)];
    const filling = { text: LONGEST, backed: 250, versions: VERSIONS, polled: POLLED };
    await new FullLogWriter(store.log, clock.read()).writeChamber(1, filling);
    return new TestService({ clock, store });
  }

  it('page, view, ideas and transcripts are not longer with 16 texts per idea than with one', {
    timeout: 300_000,
  }, async () => {
    const service = await amendedService();
    expect((await pageOf(service, 1)).length).toBeLessThan(PAGE_BYTES_MAX);
    const bytesOf = async (path: string) => (await (await service.app.request(path, {}, {})).arrayBuffer()).byteLength;
    expect(await bytesOf('/chambers/1')).toBeLessThan(100_000);
    // Only the latest of each idea's texts (256 texts of 8,192 characters), and the events of its 16 versions.
    expect(await bytesOf('/chambers/1/ideas')).toBeLessThan(MEMBERS * (8_192 + 2_000));
    for (const after of [0, 1_100, 4_800, 4_900]) {
      expect(await bytesOf(`/chambers/1/transcript?after=${after}&maxBytes=65536`)).toBeLessThanOrEqual(65_536);
    }
    const [idea, , last] = await service.must('GET', '/chambers/1/ideas');
    expect(idea).toMatchObject({ version: VERSIONS, stances: { for: 86, against: 85, undecided: 85, outdated: 0 } });
    expect(idea.versions).toHaveLength(VERSIONS);
    expect(last.description.startsWith(`${VERSIONS}&`)).toBe(true);
  });
});
