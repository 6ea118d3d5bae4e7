// The page in a browser: the list and a chamber as they happen, the replay, and lines that were altered on their way.
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ASSETS_FOLDER } from '../../src/page/assets.ts';
import { buildPage } from '../../src/page/build.ts';
import { newAgent, newChamber, openStage, PHASE_MILLIS, type Stage } from '../client/stage.ts';
import { recordCommit } from '../kit/chambers.ts';
import { atEnd } from '../kit/temporary.ts';

const CHROMIUM = '/usr/bin/chromium';

describe.skipIf(!existsSync(CHROMIUM))('a browser', () => {
  let stage: Stage;
  let browser: Browser;
  beforeAll(async () => {
    if (!existsSync(ASSETS_FOLDER)) await buildPage(ASSETS_FOLDER);
    stage = await openStage();
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser.close();
    await stage.stop();
  });

  /** A page whose every problem ends the test: errors, violations of the policy, requests to elsewhere. */
  async function open(path: string, alter?: (line: string) => string): Promise<Page> {
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on('console', (message) => void (message.type() === 'error' && problems.push(message.text())));
    page.on('pageerror', ({ message }) => void problems.push(message));
    page.on('request', (request) => void (request.url().startsWith(stage.baseUrl) || problems.push(request.url())));
    if (alter !== undefined) {
      await page.routeWebSocket(/\/stream/, (socket) => {
        const server = socket.connectToServer();
        server.onMessage((line) => socket.send(alter(String(line))));
      });
    }
    atEnd(async () => {
      await page.close();
      expect(problems).toEqual([]);
    });
    await page.goto(stage.baseUrl + path);
    return page;
  }

  const shows = (page: Page, selector: string, text: string | RegExp) =>
    page.locator(selector).filter({ hasText: text }).first().waitFor();

  it('lists a chamber when it is created, and finds it', async () => {
    const page = await open('/');
    const agent = await newAgent(stage);
    await agent.createChamber({ ...newChamber(stage.now()), name: 'Harbour <b>watch</b>' });
    await shows(page, '.chambers .name', 'Harbour <b>watch</b>');
    await page.getByRole('searchbox').fill('no such');
    await shows(page, '.empty', 'No chamber matches.');
    await page.getByRole('searchbox').fill('harbour lobby');
    await page.getByRole('link', { name: 'Harbour' }).click();
    await shows(page, 'h1', 'Harbour <b>watch</b>');
  });

  it('watches a chamber from LOBBY to COMMITTED, verifies it, and replays it', { timeout: 90_000 }, async () => {
    const agents = await Promise.all(Array.from({ length: 5 }, () => newAgent(stage, stage.sharedTime)));
    const [host, second] = agents as [(typeof agents)[number], (typeof agents)[number]];
    const { chamberId } = await host.createChamber(newChamber(stage.now()));
    const page = await open(`/chambers/${chamberId}`);
    await shows(page, '.phases .current', 'Lobby');
    for (const agent of agents) await agent.joinChamber(chamberId);
    await shows(page, '.now', '5 members so far');
    stage.advance(PHASE_MILLIS);
    await host.propose(chamberId, { name: 'Tide gauge', ticker: 'TIDE', description: 'Reads the sea.' });
    await host.pass(chamberId);
    await shows(page, '.idea', 'Reads the sea.');
    await shows(page, '.phases .current', 'Proposal');
    stage.advance(PHASE_MILLIS);
    await host.debate(chamberId, { ideaId: 'idea-1', comment: 'Small and useful.', refinement: { depth: 3 } });
    await host.pass(chamberId);
    await second.debate(chamberId, { comment: 'Agreed.' });
    await shows(page, '.transcript .text', 'Small and useful.');
    await shows(page, '.now', 'holds the turn and may speak');
    stage.advance(PHASE_MILLIS);
    const allocations = [{ ideaId: 'idea-1', bps: 7_000 }];
    for (const agent of agents) await agent.commit(chamberId, allocations);
    await shows(page, '.envelope.sealed', 'sealed');
    stage.advance(PHASE_MILLIS);
    for (const agent of agents) await agent.reveal(chamberId);
    await shows(page, '.matrix td', '70 %');
    await shows(page, '.tally', '5 backers ✓');
    stage.advance(PHASE_MILLIS);
    await recordCommit(stage.service.forum, chamberId);
    await shows(page, '.now', 'Finished');
    const { lastEventId } = (await stage.service.forum.findChamber(String(chamberId))).state;
    const { merkleRoot } = await stage.forum.chamber(chamberId);
    await shows(page, 'code.whole', String(merkleRoot));
    await shows(
      page,
      '.verify.good',
      `${lastEventId} of ${lastEventId} events checked by your browser: nothing is broken.`,
    );
    expect(await page.locator('.mark.verified').count()).toBeGreaterThan(lastEventId);

    await page.getByRole('slider').focus();
    await page.keyboard.press('Home');
    await shows(page, '.replay output', `1 / ${lastEventId}`);
    await shows(page, '.now', 'Agents may join: 0 members so far.');
    for (let n = 2; n <= 8; n++) await page.keyboard.press('ArrowRight');
    await shows(page, '.replay output', `8 / ${lastEventId}`);
    await shows(page, '.phases .current', 'Proposal');
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    await shows(page, '.replay output', `${lastEventId} / ${lastEventId}`);
  });

  it('names an altered line and its cause', async () => {
    const agent = await newAgent(stage);
    const { chamberId } = await agent.createChamber(newChamber(stage.now()));
    await agent.joinChamber(chamberId);
    const page = await open(`/chambers/${chamberId}`, (line) => line.replace('"turnOrder":0', '"turnOrder":1'));
    await shows(page, '.findings', 'turnOrder');
    await shows(page, '#e2 .mark.broken', '✗');
    expect(await page.locator('#e1 .mark').getAttribute('aria-label')).toBe('verified');
  });
});
