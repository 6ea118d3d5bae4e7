// Opens pages in a reader's browser: Debian's Chromium with the built page. Any problem on a page fails the test.
import { existsSync } from 'node:fs';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { ASSETS_FOLDER } from '../../src/page/assets.ts';
import { buildPage } from '../../src/page/build.ts';
import { type LiveService, openLiveService, REGISTRATION } from '../client/live-service.ts';
import type { Settings } from '../kit/open-service.ts';
import { atEnd } from '../kit/temporary.ts';

const CHROMIUM = '/usr/bin/chromium';
export const HAS_CHROMIUM = existsSync(CHROMIUM);
export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

export interface Visit {
  /** Alters lines and notes of the stream in transit. */
  readonly alter?: (line: string) => string;
  /** Whether to close the stream's connection after this message. */
  readonly cut?: (message: string) => boolean;
  /** Runs in the page before its own script. */
  readonly script?: string;
  /** Alters merkle-preview. */
  readonly preview?: (text: string) => string;
  /** Messages that the console may show. */
  readonly problems?: RegExp | undefined;
  /** The origins that the page may read; its own by default. */
  readonly origins?: readonly string[];
  readonly look?: Pick<BrowserContextOptions, 'colorScheme' | 'viewport'>;
}

/** Opens a live service and a browser for all tests of a describe block. */
export function readerOfService(settings: () => Settings | Promise<Settings> = () => ({})) {
  const reader = {} as { live: LiveService } & Reader;
  beforeAll(async () => {
    reader.live = await openLiveService(await settings());
    Object.assign(reader, await openReader(reader.live.baseUrl));
  });
  afterAll(async () => {
    await reader.close?.();
    await reader.live?.stop();
  });
  return reader;
}

type Reader = Awaited<ReturnType<typeof openReader>>;

async function openReader(baseUrl: string) {
  if (!existsSync(ASSETS_FOLDER)) await buildPage(ASSETS_FOLDER);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });

  /** Problems are errors, violations of the policy, and requests to other origins. */
  async function open(
    path: string,
    { alter, cut, script, preview, problems: known, origins = [baseUrl], look }: Visit = {},
  ): Promise<Page> {
    const page = await browser.newPage(look);
    const problems: string[] = [];
    page.on('console', (message) => {
      // An event of the last second or two may not be covered by a checkpoint yet.
      const isEarly = message.location().url.endsWith('/tlog-proof') && message.text().includes('404');
      if (message.type() === 'error' && !isEarly && !known?.test(message.text())) problems.push(message.text());
    });
    page.on('pageerror', ({ message }) => void problems.push(message));
    page.on(
      'request',
      (request) => void (origins.includes(new URL(request.url()).origin) || problems.push(request.url())),
    );
    if (alter !== undefined || cut !== undefined) {
      await page.routeWebSocket(/\/stream/, (socket) => {
        const server = socket.connectToServer();
        server.onMessage(async (data) => {
          const message = String(data);
          socket.send(alter?.(message) ?? message);
          if (cut?.(message)) await socket.close();
        });
      });
    }
    if (script !== undefined) await page.addInitScript(script);
    if (preview !== undefined) {
      await page.route(/merkle-preview/, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: preview(await response.text()) });
      });
    }
    atEnd(async () => {
      await page.close();
      expect(problems).toEqual([]);
    });
    await page.goto(baseUrl + path);
    return page;
  }

  return { open, close: () => browser.close() };
}

/** Resolves once an element shows the text. */
export function expectShown(page: Page, selector: string, text: string | RegExp): Promise<void> {
  return page.locator(selector).filter({ hasText: text }).first().waitFor();
}

/** Registers an agent with this label, on the live service's clock. */
export async function newLabelled(live: LiveService, label: string): Promise<Agent> {
  const agent = Agent.generate(new ForumClient(live.baseUrl, live.sharedTime));
  await agent.register({ ...REGISTRATION, label });
  return agent;
}
