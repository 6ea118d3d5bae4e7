// Tests pages with hostile texts: they remain text within their elements, and every view is accessible.
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { visibleText } from '../../src/vocabulary/visible.ts';
import { type LiveService, newChamber, PHASE_MILLIS } from '../client/live-service.ts';
import { recordCommit } from '../kit/chambers.ts';
import { HOSTILE } from './hostile.ts';
import { DESK, expectShown, HAS_CHROMIUM, newLabelled, PHONE, readerOfService, type Visit } from './reader.ts';

const SAMPLE = new URL('../../fixtures/logs/chamber.ndjson', import.meta.url).pathname;
const LONG = 'long '.repeat(11_000);
const NAME_CHARS_MAX = 120;
const LABEL_CHARS_MAX = 64;
const cut = (text: string, charsMax: number) => text.slice(0, charsMax).toWellFormed();

describe.skipIf(!HAS_CHROMIUM)('with hostile texts in every field', () => {
  const reader = readerOfService();
  beforeAll(() => playHostile(reader.live));

  it.each([DESK, PHONE])(
    'every visible text is shown unchanged, and the layout at $width px is intact',
    async (viewport) => {
      const look = { viewport };
      const list = await reader.open('/', { look });
      await expectShown(list, '.search', '');
      const open = (await textsOf(list, 'section:first-of-type .name bdi')).toReversed();
      expect(open).toEqual(HOSTILE.map((text) => visibleText(cut(text, NAME_CHARS_MAX))).toSpliced(2, 1));
      expect(await misplaced(list)).toEqual([]);
      const page = await reader.open('/chambers/1', { look });
      await expectShown(page, '.verify.good', 'nothing is broken.');
      for (const summary of await page.locator('.rest summary').all()) await summary.click();
      const labels = HOSTILE.map((text) => visibleText(cut(text, LABEL_CHARS_MAX)));
      const texts = HOSTILE.map(visibleText);
      expect(await textsOf(page, '.members .label')).toEqual(labels);
      expect(await textsOf(page, '.idea h3 bdi')).toEqual(HOSTILE.map((text) => visibleText(ideaName(text))));
      expect(await textsOf(page, '.idea > .text')).toEqual(texts);
      expect(await textsOf(page, '.said > .text')).toEqual([...texts, 'long']);
      const refinements = await textsOf(page, '.said pre, .said .refinement');
      const sent = HOSTILE.map((text) => JSON.stringify({ [`key ${text}`]: text }));
      expect(refinements.slice(0, -1).map((text) => JSON.parse(text))).toEqual(
        sent.map((json) => JSON.parse(visibleText(json))),
      );
      const [begin, end = ''] = (refinements.at(-1) ?? '').split(' [');
      expect([JSON.stringify({ LONG }).startsWith(begin as string), end]).toEqual([true, '…]']);
      expect(await misplaced(page)).toEqual([]);
    },
  );

  it.each<View>([
    { title: 'the list', path: '/', ready: '.chambers' },
    { title: 'a chamber in its lobby', path: '/chambers/2', ready: '.verify.good' },
    { title: 'a committed chamber', path: '/chambers/3', ready: '.verify.good' },
    { title: 'a replay', path: '/chambers/3', ready: '.verify.good', act: (page) => page.keyboard.press('ArrowLeft') },
    { title: 'a finding', path: '/chambers/2', ready: '.verify.bad', visit: { alter: toOtherNumber } },
    { title: 'a file', path: '/', ready: '.search', act: chooseFile },
    { title: 'the API reference', path: '/docs', ready: '#Moves', visit: { problems: /404/ } },
    { title: 'the guide for agents', path: '/agent-guide', ready: '[id="1-identity"]', visit: { problems: /404/ } },
    { title: 'an error', path: '/chambers/99', ready: 'h1', visit: { problems: /404/ } },
    { title: 'an unknown address', path: '/no/such/page', ready: 'h1', visit: { problems: /404/ } },
  ])(
    'axe finds no problem on $title, in light mode and in dark mode on a phone',
    async ({ path, ready, visit, act }) => {
      const page = await reader.open(path, visit);
      await page.locator(ready).first().waitFor();
      await act?.(page);
      expect(['as it is', await axeOn(page)]).toEqual(['as it is', []]);
      await page.locator('details').evaluateAll((all) => {
        // The API reference has hundreds of details elements, of a few kinds.
        for (const each of all.slice(0, 10)) each.setAttribute('open', '');
      });
      expect(['light', await axeOn(page)]).toEqual(['light', []]);
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.setViewportSize(PHONE);
      expect(['dark', await axeOn(page)]).toEqual(['dark', []]);
    },
  );
});

interface View {
  readonly title: string;
  readonly path: string;
  /** Visible once the view is complete. */
  readonly ready: string;
  readonly visit?: Visit;
  readonly act?: (page: Page) => Promise<void>;
}

function toOtherNumber(line: string): string {
  return line.replace('"turnOrder":0', '"turnOrder":1');
}

async function chooseFile(page: Page): Promise<void> {
  await page.locator('input[type=file]').setInputFiles(SAMPLE);
  await expectShown(page, '.verify.good', 'nothing is broken.');
}

/** Names of ideas contain no control characters. */
function ideaName(text: string): string {
  return cut(text, NAME_CHARS_MAX).replace(/\p{Cc}/gu, '');
}

/** Chamber 1 has every text in every field, chamber 2 is in LOBBY, chamber 3 is committed; the others fill the list. */
async function playHostile(live: LiveService): Promise<void> {
  const agents = await Promise.all(HOSTILE.map((text) => newLabelled(live, cut(text, LABEL_CHARS_MAX))));
  const [host] = agents as [(typeof agents)[number]];
  for (const text of HOSTILE) {
    await host.createChamber({ ...newChamber(live.now()), name: cut(text, NAME_CHARS_MAX), topic: text });
  }
  for (const agent of agents) await agent.joinChamber(1);
  await host.joinChamber(2);
  await host.joinChamber(3);
  live.advance(PHASE_MILLIS);
  for (const [index, text] of HOSTILE.entries()) {
    await host.propose(1, { name: ideaName(text), ticker: `${'W'.repeat(29)}${index}`, description: text });
  }
  await host.propose(3, { name: 'Tide gauge', ticker: 'TIDE', description: 'Reads the sea.' });
  live.advance(PHASE_MILLIS);
  for (const text of HOSTILE)
    await host.debate(1, { ideaId: 'idea-1', comment: text, refinement: { [`key ${text}`]: text } });
  await host.debate(1, { comment: 'long', refinement: { LONG } });
  live.advance(PHASE_MILLIS);
  await host.commit(1, [{ ideaId: 'idea-1', bps: 10_000 }]);
  await host.commit(3, [{ ideaId: 'idea-1', bps: 10_000 }]);
  live.advance(PHASE_MILLIS);
  await host.reveal(1);
  await host.reveal(3);
  live.advance(PHASE_MILLIS);
  await recordCommit(live.service.forum, 3);
}

function textsOf(page: Page, selector: string): Promise<string[]> {
  return page.locator(selector).evaluateAll((elements) => elements.map(({ textContent }) => textContent ?? ''));
}

/** Returns elements that extend beyond the screen or overlap the next element. */
function misplaced(page: Page): Promise<string[]> {
  return page.locator('main').evaluate((main) => {
    const isBeside = (element: typeof main) => element.closest('.scroll, .hidden, .skip') !== null;
    const name = (element: typeof main) =>
      `${element.tagName} ${element.className} ${element.textContent?.slice(0, 30)}`;
    const all = [main, ...main.querySelectorAll('*:not(svg *)')].filter((element) => !isBeside(element));
    const { width } = main.ownerDocument.documentElement.getBoundingClientRect();
    const wide = all.filter((element) => element.getBoundingClientRect().right > width + 1);
    const blocks = [...main.querySelectorAll('.entry, .idea, .chambers li, .members li')];
    const over = blocks.filter((block) => {
      const next = block.nextElementSibling?.getBoundingClientRect();
      const { bottom, right } = block.getBoundingClientRect();
      return next !== undefined && next.top < bottom - 1 && next.left < right - 1;
    });
    return [...wide, ...over].map(name);
  });
}

async function axeOn(page: Page): Promise<readonly object[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run({
      resultTypes: ['violations'],
    });
    return violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html.slice(0, 200)) }));
  });
}
