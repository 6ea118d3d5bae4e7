// Tests the API reference and the guide in a browser: the link to the chambers, and a layout that fits every screen.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { DESK, expectShown, HAS_CHROMIUM, PHONE, readerOfService } from './reader.ts';

const ICON_MISSING = /404/;

describe.skipIf(!HAS_CHROMIUM)('the documents in a browser', () => {
  const reader = readerOfService();
  const open = (path: string, viewport: typeof DESK) =>
    reader.open(path, { look: { viewport }, problems: ICON_MISSING });

  it.each(['/docs', '/agent-guide'])('%s links to the chambers', async (path) => {
    const page = await open(path, DESK);
    await page.locator('.site').getByRole('link', { name: 'Chambers' }).click();
    await expectShown(page, 'h1', 'Chambers');
  });

  it.each(['/docs', '/agent-guide'])(
    'the contents of %s are open next to the text, and closed above it on a phone',
    async (path) => {
      const wide = await open(path, DESK);
      const link = (page: Page) => page.locator('.contents li a').first();
      expect(await link(wide).isVisible()).toBe(true);
      const page = await open(path, PHONE);
      expect(await link(page).isVisible()).toBe(false);
      expect((await page.locator('.contents').boundingBox())?.height).toBeLessThan(60);
      await page.locator('.contents summary').click();
      expect(await link(page).isVisible()).toBe(true);
      // The list of contents does not scroll separately.
      expect(await page.locator('.contents').evaluate((nav) => nav.scrollHeight - nav.clientHeight)).toBe(0);
    },
  );

  it.each([DESK, PHONE])('the guide shows all of its code at a width of $width px', async (viewport) => {
    const page = await open('/agent-guide', viewport);
    const cut = await page.locator('pre').evaluateAll((all) => all.map((pre) => pre.scrollWidth - pre.clientWidth));
    expect(Math.max(...cut)).toBe(0);
  });
});
