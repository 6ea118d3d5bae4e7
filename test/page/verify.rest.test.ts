// Tests the page's verdict on lines altered in transit, on a service that contradicts its lines, on history that was changed after a link
// was made, and on exported files. The command line has the same verdict.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import { formatNote, formatVerifierKey, parseNote } from '../../src/tlog/note.ts';
import { visibleText } from '../../src/vocabulary/visible.ts';
import { FORGERIES } from '../audit/forgeries.ts';
import { newAgent, newChamber } from '../client/live-service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { Witness } from '../kit/witness.ts';
import { expectShown, HAS_CHROMIUM, readerOfService } from './reader.ts';

const POLL = { timeout: 10_000 };
const SAMPLE = new URL('../../fixtures/logs/chamber.ndjson', import.meta.url);

describe.skipIf(!HAS_CHROMIUM)('the page', () => {
  const reader = readerOfService();
  /** The path of a chamber with two moves. */
  let path: string;
  let root: string;
  beforeAll(async () => {
    const agent = await newAgent(reader.live);
    const { chamberId } = await agent.createChamber(newChamber(reader.live.now()));
    await agent.joinChamber(chamberId);
    path = `/chambers/${chamberId}`;
    ({ root } = (await (await fetch(`${reader.live.baseUrl}${path}/merkle-preview`)).json()) as {
      readonly root: string;
    });
  });

  it('the page names an event with one altered byte, and the cause', async () => {
    const page = await reader.open(path, { alter: (line) => line.replace('"turnOrder":0', '"turnOrder":1') });
    await expectShown(page, '.findings', 'turnOrder');
    await expectShown(page, '#e2 .mark.broken', '✗');
    expect(await page.locator('#e1 .mark').getAttribute('aria-label')).toBe('verified');
  });

  it('the page repeats a read that failed because of a portal or a truncated response, and reports no fault of the lines', async () => {
    let reads = 0;
    const preview = (text: string) => {
      reads++;
      return reads === 1 ? '<html>Accept our terms</html>' : reads === 2 ? text.slice(0, 20) : text;
    };
    const page = await reader.open(path, { preview });
    await page.getByText('What is checked').click();
    await expectShown(page, '.checks', /could not be read and is read again/);
    await page.locator('.verify.good').waitFor();
    await expect.poll(() => reads, POLL).toBe(3);
    await expect.poll(() => page.locator('.checks').textContent(), POLL).not.toContain('could not be read');
    expect(await page.locator('.verify').textContent()).not.toContain('can’t be checked');
  });

  it('a click in progress and a half-filled form survive new findings', async () => {
    const agent = await newAgent(reader.live);
    const { chamberId } = await agent.createChamber(newChamber(reader.live.now()));
    const page = await reader.open(`/chambers/${chamberId}`, {
      alter: (line) => line.replace('"turnOrder":0', '"turnOrder":1'),
    });
    await page.locator('.verify.good').waitFor();
    const form = page.locator('.chain');
    const summary = form.locator('summary');
    await summary.click();
    await page.getByLabel('RPC').fill('https://rpc.example');
    await summary.hover();
    await page.mouse.down();
    await agent.joinChamber(chamberId);
    // Longer than it takes to find and draw the findings.
    await page.waitForTimeout(1_000);
    expect(await form.getAttribute('open')).toBe('');
    await page.mouse.up();
    await expectShown(page, '.findings', 'turnOrder');
    expect(await form.getAttribute('open')).toBeNull();
    await summary.click();
    expect(await page.getByLabel('RPC').inputValue()).toBe('https://rpc.example');
  });

  it('the page reports a service whose root differs from that of its lines', async () => {
    const other = `0x${'12'.repeat(32)}`;
    const page = await reader.open(path, { preview: (text) => text.replace(root, other) });
    await expectShown(
      page,
      '.findings',
      `the service names the root ${other}, but the root of these 2 moves is ${root}`,
    );
  });

  it('a link to the current root shows later visitors whether history was changed', async () => {
    const page = await reader.open(path);
    await page.getByRole('link', { name: 'Link to these 2 moves' }).click();
    await page.waitForURL(`**${path}?size=2&root=${root}`);
    await page.getByText('What is checked').click();
    await expectShown(page, '.checks li', '✓ the first moves are those that the link names');
    const other = `0x${'34'.repeat(32)}`;
    const changed = await reader.open(`${path}?size=1&root=${other}`);
    await expectShown(
      changed,
      '.findings',
      `history was changed: the link names the root ${other} of the first 1 moves`,
    );
    const cut = await reader.open(`${path}?size=9&root=${root}`);
    await expectShown(cut, '.findings', 'of the first 9 moves, but there are only 2');
  });

  /** Returns the badges' labels and verdicts. */
  const badges = async (page: Page) => {
    const proofs = await page.locator('.proof').all();
    const read = proofs.map(async (proof) => [
      ((await proof.textContent()) ?? '').slice(2),
      await proof.getByRole('img').getAttribute('aria-label'),
    ]);
    return Object.fromEntries(await Promise.all(read));
  };
  const SLOW = { timeout: 20_000, interval: 200 };
  const proofOf = async (eventId: number) =>
    (await fetch(`${reader.live.baseUrl}${path}/events/${eventId}/tlog-proof`)).text();
  /** Alters the service's published log. */
  const alterProof = (page: Page, alter: (text: string) => string) =>
    page.route(/\/tlog-proof$/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: alter(await response.text()) });
    });

  it('the page shows a badge for each proof, and at the next visit that the log is append-only', {
    timeout: 60_000,
  }, async () => {
    const page = await reader.open(path);
    const proven = { root: 'verified', checkpoint: 'verified', inclusion: 'verified' };
    const notYet = { consistency: 'not evaluated', witnesses: 'not evaluated' };
    await expect.poll(() => badges(page), SLOW).toEqual({ ...proven, ...notYet });
    const first = await proofOf(2);
    await newAgent(reader.live);
    await expect.poll(() => proofOf(2), SLOW).not.toBe(first);
    await page.reload();
    await expect.poll(() => badges(page), SLOW).toEqual({ ...proven, ...notYet, consistency: 'verified' });
    // Serves the earlier checkpoint, which is valid on its own.
    await alterProof(page, () => first);
    await page.reload();
    await expectShown(page, '.findings', /the service shows a checkpoint of \d+ lines, but has signed one of \d+/);
    expect(await badges(page)).toMatchObject({ ...proven, consistency: 'broken' });
  });

  it('the page reports a checkpoint not signed by the log, and a checkpoint that does not cover the lines', {
    timeout: 60_000,
  }, async () => {
    const unsigned = await reader.open('/');
    await alterProof(unsigned, (text) =>
      text.replace(/(\n— \S+ \S{8})./u, (all) => all.slice(0, -1) + (all.endsWith('A') ? 'B' : 'A')),
    );
    await unsigned.goto(reader.live.baseUrl + path);
    await expectShown(unsigned, '.findings', "the service's checkpoint is not signed by");
    expect(await badges(unsigned)).toMatchObject({ checkpoint: 'broken', inclusion: 'not evaluated' });
    const other = await reader.open('/');
    await alterProof(other, (text) => text.replace(/^index \d+$/m, 'index 0'));
    await other.goto(reader.live.baseUrl + path);
    await expectShown(other, '.findings', 'the service does not prove that event 2 is in its published log');
    expect(await badges(other)).toMatchObject({ checkpoint: 'verified', inclusion: 'broken' });
  });

  it('the page verifies the cosignatures of witnesses named by the reader', { timeout: 60_000 }, async () => {
    const witness = new Witness();
    const query = `?witnesses=${encodeURIComponent(formatVerifierKey(witness.key))}`;
    const page = await reader.open(path + query);
    await expect.poll(() => badges(page), SLOW).toMatchObject({ checkpoint: 'verified', witnesses: 'not evaluated' });
    await page.getByText('What is checked').click();
    await expectShown(page, '.checks', 'no cosignature of witness.test/w1');
    await alterProof(page, (text) => {
      const end = text.indexOf('\n\n') + 2;
      const note = parseNote(text.slice(end)) ?? expect.fail('no note');
      const cosigned = witness.cosign(note.text, Math.floor(Date.now() / 1_000));
      return text.slice(0, end) + formatNote({ ...note, signatures: [...note.signatures, cosigned] });
    });
    await page.reload();
    await expect.poll(() => badges(page), SLOW).toMatchObject({ witnesses: 'verified' });
  });

  it('the page shows and audits a file that is dropped on it', async () => {
    const page = await reader.open('/');
    const text = await readFile(SAMPLE, 'utf8');
    await page.locator('live-list').waitFor();
    const data = await page.locator('html').evaluateHandle(({ ownerDocument }, lines) => {
      const transfer = new ownerDocument.defaultView.DataTransfer();
      transfer.items.add(new File([lines], 'garden.ndjson'));
      return transfer;
    }, text);
    await page.dispatchEvent('body', 'drop', { dataTransfer: data });
    await expectShown(page, 'h1', 'A garden of ideas');
    await expectShown(page, '.verify.good', 'garden.ndjson, which does not leave this browser.');
    await expectShown(page, '.verify.good', '22 of 22 events checked by your browser: nothing is broken.');
  });

  it('the page reports the same findings for files as the command line', { timeout: 60_000 }, async () => {
    const folder = temporaryFolder();
    const page = await reader.open('/');
    for (const [index, { title, text }] of FORGERIES.entries()) {
      const file = join(folder, `${index}.ndjson`);
      await writeFile(file, text);
      const { checks } = await auditFile(file, {});
      await page.locator('input[type=file]').setInputFiles(file);
      await expectShown(page, '.verify', `${index}.ndjson`);
      await expectShown(page, '.verify.bad', 'found this log broken.');
      const due = checks.filter(({ verdict }) => verdict === 'broken');
      await page
        .locator('.findings > li')
        .nth(due.length - 1)
        .waitFor();
      expect([title, await findingsOn(page)]).toEqual([
        title,
        due.map((check) => [
          `Broken: ${check.title}`,
          check.findings.slice(0, 5).map(({ sentence }) => visibleText(sentence)),
        ]),
      ]);
    }
  });

  it('the page renders a long transcript near the screen only, jumps to any event, and prints all events', async () => {
    const sample = (await readFile(SAMPLE, 'utf8')).split('\n');
    const first = sample.findIndex((line) => line.includes('"type":"chamber.debated"'));
    const debated = JSON.parse(sample[first] ?? '') as { readonly eventId: number };
    const long = Array.from({ length: 1_000 }, (_, n) => JSON.stringify({ ...debated, eventId: debated.eventId + n }));
    const buffer = Buffer.from([...sample.slice(0, first), ...long].join('\n'));
    const page = await reader.open('/');
    await page.locator('input[type=file]').setInputFiles({ name: 'long.ndjson', mimeType: '', buffer });
    await expectShown(page, '#e1', 'created the chamber');
    const entries = () => page.locator('.entry').count();
    await page.getByRole('link', { name: 'to the latest event' }).click();
    await expect.poll(() => isOnScreen(page, `#e${first + 1_000}`), POLL).toBe(true);
    await expect.poll(entries, POLL).toBeLessThan(300);
    await page.goto(`${reader.live.baseUrl}/#e500`);
    await expect.poll(() => isOnScreen(page, '#e500'), POLL).toBe(true);
    await page.evaluate("dispatchEvent(new Event('beforeprint'))");
    expect(await entries()).toBe(first + 1_000);
    await page.evaluate("dispatchEvent(new Event('afterprint'))");
    await expect.poll(entries, POLL).toBeLessThan(300);
  });

  it('the page reports that a file has no events', async () => {
    const page = await reader.open('/');
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'a.txt', mimeType: '', buffer: Buffer.from('Hello\n') });
    await expectShown(page, 'h1', 'This log cannot be shown');
    await expectShown(page, '.verify', 'it contains no chamber event');
  });
});

function isOnScreen(page: Page, selector: string): Promise<boolean> {
  return page.locator(selector).evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= element.ownerDocument.defaultView.innerHeight;
  });
}

function findingsOn(page: Page) {
  return page
    .locator('.findings > li')
    .evaluateAll((checks) =>
      checks.map((check) => [
        check.querySelector('b').textContent,
        [...check.querySelectorAll('bdi')].map(({ textContent }) => textContent),
      ]),
    );
}
