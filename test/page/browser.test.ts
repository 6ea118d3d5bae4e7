// The page in a browser: the live list, a live chamber, and the replay.
import { writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { ChamberView } from '../../projections/views.ts';
import { PHASE_NAMES } from '../../src/page/format.ts';
import { newAgent, newChamber, PHASE_MILLIS } from '../client/live-service.ts';
import { recordCommit } from '../kit/chambers.ts';
import { DESK, expectShown, HAS_CHROMIUM, newLabelled, readerOfService } from './reader.ts';

/** The file to which a run writes the README's picture. */
const { PICTURE } = process.env;

describe.skipIf(!HAS_CHROMIUM)('a browser', () => {
  const reader = readerOfService();

  it('a browser lists a new chamber, and its search finds the chamber', async () => {
    const page = await reader.open('/');
    const agent = await newAgent(reader.live);
    await agent.createChamber({ ...newChamber(reader.live.now()), name: 'Harbour <b>watch</b>' });
    await expectShown(page, '.chambers .name', 'Harbour <b>watch</b>');
    await page.getByRole('searchbox').fill('no such');
    await expectShown(page, '.empty', 'No chamber matches.');
    await page.getByRole('searchbox').fill('harbour lobby');
    await page.getByRole('link', { name: 'Harbour' }).click();
    await expectShown(page, 'h1', 'Harbour <b>watch</b>');
  });

  it('nothing moves when the script adopts the service’s HTML', async () => {
    const agent = await newAgent(reader.live);
    const { chamberId } = await agent.createChamber({
      ...newChamber(reader.live.now()),
      name: 'Still',
      topic: 'Nothing moves.',
    });
    await agent.joinChamber(chamberId);
    for (const [path, ready] of [
      ['/', '.search'],
      [`/chambers/${chamberId}`, '.verify.good'],
    ] as const) {
      const page = await reader.open(path, { look: { viewport: DESK } });
      await page.locator(ready).waitFor();
      await expectShown(page, 'main', path === '/' ? /\d s left/ : 'Link to these 2 moves');
      expect([path, await layoutShift(page)]).toEqual([path, expect.closeTo(0, 2)]);
    }
  });

  it('an agent’s name is on the baseline of its sentence', async () => {
    const agent = await newAgent(reader.live);
    const { chamberId } = await agent.createChamber(newChamber(reader.live.now()));
    await agent.joinChamber(chamberId);
    reader.live.advance(PHASE_MILLIS);
    const page = await reader.open(`/chambers/${chamberId}`);
    await expectShown(page, '.now', 'holds the turn');
    for (const sentence of ['.by', '.now']) {
      expect([sentence, await baselines(page, sentence)]).toEqual([sentence, [expect.any(Number)]]);
    }
  });

  it('a browser follows a chamber from LOBBY to COMMITTED, verifies and replays it', { timeout: 90_000 }, async () => {
    const names = ['Ada', 'Bruno', 'Chiara', 'Dana', 'Emil'];
    const agents = await Promise.all(names.map((label) => newLabelled(reader.live, label)));
    const [host, second] = agents as [(typeof agents)[number], (typeof agents)[number]];
    const topic = 'What should the harbour build next year?';
    const { chamberId } = await host.createChamber({ ...newChamber(reader.live.now()), name: 'Harbour fund', topic });
    /** The service's view when its log had n events. */
    const views = new Map<number, ChamberView>();
    const recordView = async () => {
      const [{ state }, view] = [
        await reader.live.service.forum.findChamber(String(chamberId)),
        await reader.live.forum.chamber(chamberId),
      ];
      views.set(state.lastEventId, view as unknown as ChamberView);
    };
    const moves = async (...made: readonly (() => Promise<unknown>)[]) => {
      for (const move of made) {
        await move();
        await recordView();
      }
    };
    await recordView();
    const page = await reader.open(`/chambers/${chamberId}`, { look: { viewport: { width: 1200, height: 760 } } });
    await expectShown(page, '.phases .current', 'Lobby');
    await moves(...agents.map((agent) => () => agent.joinChamber(chamberId)));
    await expectShown(page, '.now', '5 members so far');
    const heightOfNow = async () => (await page.locator('.now').boundingBox())?.height;
    const height = await heightOfNow();
    await expectShown(page, '.members .label', 'Emil');
    reader.live.advance(PHASE_MILLIS);
    await moves(
      () => host.propose(chamberId, { name: 'Tide gauge', ticker: 'TIDE', description: 'Reads the sea.' }),
      () => host.pass(chamberId),
      () => second.propose(chamberId, { name: 'Fog light', ticker: 'FOG', description: 'Instead of the horn.' }),
    );
    await expectShown(page, '.idea', 'Reads the sea.');
    await expectShown(page, '.phases .current', 'Proposal');
    reader.live.advance(PHASE_MILLIS);
    await moves(
      () => host.debate(chamberId, { ideaId: 'idea-1', comment: 'Small and useful.', refinement: { depth: 3 } }),
      () => host.pass(chamberId),
      () => second.debate(chamberId, { comment: 'Agreed.' }),
    );
    await expectShown(page, '.transcript .text', 'Small and useful.');
    await expectShown(page, '.now', 'holds the turn and may speak');
    // An agent's name does not increase the height of its line.
    expect(await heightOfNow()).toBe(height);
    reader.live.advance(PHASE_MILLIS);
    await moves(
      ...agents.map((agent, index) => () => {
        const bps = 7_000 - 1_000 * index;
        return agent.commit(chamberId, [
          { ideaId: 'idea-1', bps },
          { ideaId: 'idea-2', bps: 10_000 - bps },
        ]);
      }),
    );
    await expectShown(page, '.envelope.committed', 'committed');
    reader.live.advance(PHASE_MILLIS);
    await moves(...agents.map((agent) => () => agent.reveal(chamberId)));
    await expectShown(page, '.matrix td', '70 %');
    await expectShown(page, '.tally', '5 backers ✓');
    reader.live.advance(PHASE_MILLIS);
    await moves(() => recordCommit(reader.live.service.forum, chamberId));
    await expectShown(page, '.now', 'Finished');
    const last = Math.max(...views.keys());
    await expectShown(page, 'code.whole', String(views.get(last)?.merkleRoot));
    await expectShown(page, '.verify.good', `${last} of ${last} events checked by your browser: nothing is broken.`);
    await expectShown(page, `#e${last} .mark.verified`, '✓');
    if (PICTURE !== undefined) await writeFile(PICTURE, await pictureOf(page));

    await page.getByRole('slider').focus();
    await page.keyboard.press('Home');
    for (let n = 1; n <= last; n++) {
      await expectShown(page, '.replay output', new RegExp(`^${n} / ${last}$`));
      expect([n, await viewOn(page)]).toEqual([n, shown(views.get(n))]);
      await page.keyboard.press('ArrowRight');
    }
    await page.keyboard.press('Home');
    await page.getByRole('combobox').selectOption('16×');
    await page.getByRole('slider').focus();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await expectShown(page, '.replay output', `${last} / ${last}`);
    await page.getByRole('button', { name: 'Play' }).waitFor();
    await page.goto(`${reader.live.baseUrl}/chambers/${chamberId}#e7`);
    await page.locator('#e7.linked').waitFor();
  });
});

/** Returns the distinct baselines of a sentence and of the agent's name in it. */
function baselines(page: Page, selector: string): Promise<number[]> {
  return page.locator(selector).evaluate((sentence) => {
    const agent = sentence.querySelector('.agent :is(.did, .label)');
    const heights = [sentence, agent].map((parent) => {
      const mark = sentence.ownerDocument.createElement('span');
      mark.style.display = 'inline-block';
      parent?.append(mark);
      const { bottom } = mark.getBoundingClientRect();
      mark.remove();
      return Math.round(bottom);
    });
    return [...new Set(heights)];
  });
}

/** Returns the sum of the layout shifts that Chromium reports. */
function layoutShift(page: Page): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    let sum = 0;
    const observer = new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => { sum += value; }));
    observer.observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => resolve(sum), 100);
  })`);
}

/** Returns the part of a chamber's view that the page shows. */
function shown(view: ChamberView | undefined) {
  if (view === undefined) return undefined;
  const { name, topic, phase, members, currentTurnAgent, ideas, merkleRoot, committedTxHash, deadlines } = view;
  return {
    name,
    topic,
    phase: PHASE_NAMES[phase],
    deadlines: Object.values(deadlines),
    members,
    currentTurnAgent,
    ideas: ideas.map(({ ticker, name, creator }) => ({ ticker, name, creator })),
    merkleRoot,
    committedTxHash,
  };
}

function viewOn(page: Page) {
  return page.locator('main').evaluate((main) => {
    const all = (selector: string) => [...main.querySelectorAll(selector)];
    const text = (selector: string) => main.querySelector(selector)?.textContent ?? null;
    const did = (element: typeof main | null) => element?.getAttribute('title') ?? null;
    return {
      name: text('h1'),
      topic: text('.topic'),
      phase: text('.phases .current strong') ?? text('.phases li:last-child strong'),
      deadlines: all('.phases time')
        .slice(0, 5)
        .map((each) => each.getAttribute('datetime')),
      members: all('.members .agent').map(did),
      currentTurnAgent: did(main.querySelector('.now .agent')),
      ideas: all('.idea').map((idea) => ({
        ticker: idea.querySelector('.ticker')?.textContent,
        name: idea.querySelector('bdi')?.textContent,
        creator: did(idea.querySelector('.agent')),
      })),
      merkleRoot: all('code.whole')[0]?.textContent ?? null,
      committedTxHash: all('code.whole')[1]?.textContent ?? null,
    };
  });
}

/** Takes a screenshot in WebP, which playwright itself can't write. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  return Buffer.from(data, 'base64');
}
