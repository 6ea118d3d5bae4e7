// A chamber with rounds in a browser: its phases end by the service's clock, not the browser's, and notes change nothing else.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { ChamberView } from '../../projections/views.ts';
import type { NewChamber } from '../../src/client/index.ts';
import { PHASE_NAMES } from '../../src/page/format.ts';
import { newAgent, newChamber } from '../client/live-service.ts';
import { recordCommit } from '../kit/chambers.ts';
import { expectShown, HAS_CHROMIUM, newLabelled, readerOfService } from './reader.ts';

const PACE: Partial<NewChamber> = { rounds: { proposal: 1, debate: 1 }, turnSeconds: 60 };

describe.skipIf(!HAS_CHROMIUM)('a browser at a chamber with rounds', () => {
  const reader = readerOfService();

  it('a browser shows the end of each phase with the move that ends it, and replays the service’s views', async () => {
    const agents = await Promise.all(['Ada', 'Bruno'].map((label) => newLabelled(reader.live, label)));
    const [ada, bruno] = agents as [(typeof agents)[number], (typeof agents)[number]];
    const { chamberId: id } = await ada.createChamber({ ...newChamber(reader.live.now()), ...PACE, maxMembers: 2 });
    const views: ChamberView[] = [];
    const recordView = async () => void views.push((await reader.live.forum.chamber(id)) as unknown as ChamberView);
    await recordView();
    const page = await reader.open(`/chambers/${id}`);
    await expectShown(page, '.phases .current', /^Lobbyends by /);
    const allocations = [{ ideaId: 'idea-1', bps: 10_000 }];
    for (const [phase, ...moves] of [
      ['Proposal', () => ada.joinChamber(id), () => bruno.joinChamber(id)],
      [
        'Debate',
        () => ada.propose(id, { name: 'Tide gauge', ticker: 'TIDE' }),
        () => ada.pass(id),
        () => bruno.pass(id),
      ],
      ['Commit', () => ada.debate(id, { comment: 'Useful.' }), () => ada.pass(id), () => bruno.pass(id)],
      ['Reveal', ...agents.map((agent) => () => agent.commit(id, allocations))],
    ] as const) {
      for (const move of moves) {
        await move();
        await recordView();
      }
      await expectShown(page, '.phases .current', new RegExp(`^${phase}ends by `));
    }
    for (const agent of agents) {
      await agent.reveal(id);
      await recordView();
    }
    await expectShown(page, '.now', 'All moves have been made.');
    await expectShown(page, '.phases .current', /^Revealended early /);
    await recordCommit(reader.live.service.forum, id);
    await recordView();
    await expectShown(page, '.now', 'Finished');
    await expectShown(
      page,
      '.verify.good',
      `${views.length} of ${views.length} events checked by your browser: nothing is broken.`,
    );
    await page.getByRole('slider').focus();
    await page.keyboard.press('Home');
    for (const [index, view] of views.entries()) {
      await expectShown(page, '.replay output', new RegExp(`^${index + 1} / ${views.length}$`));
      expect([index + 1, await paceOn(page)]).toEqual([index + 1, paceOf(view)]);
      await page.keyboard.press('ArrowRight');
    }
  });

  it('a browser shows the end of a phase when the service sends a note, even if its own clock is stopped', async () => {
    const agent = await newAgent(reader.live);
    const lobbyDeadline = new Date(reader.live.now() + 5_000);
    const { chamberId } = await agent.createChamber({ ...newChamber(reader.live.now()), ...PACE, lobbyDeadline });
    await agent.joinChamber(chamberId);
    const page = await reader.open(`/chambers/${chamberId}`, {
      script: 'performance.now = () => 0;',
      // So the note is the only source of the time.
      alter: (message) =>
        message.startsWith('{"note":"caught-up"') ? message.replace(/"now":"[^"]*"/, '"now":""') : message,
    });
    await expectShown(page, '.phases .current', /^Lobby.*UTC\d s left$/);
    await expectShown(page, '.phases .current', 'Proposal');
    await expectShown(page, '.now', / Round 1 of 1, turn 1 of 1\.$/);
    await expectShown(page, '.verify.good', '2 of 2 events checked by your browser: nothing is broken.');
  });

  it('a browser resumes after the last line, not after the last note', async () => {
    const agent = await newAgent(reader.live);
    const { chamberId: id } = await agent.createChamber({ ...newChamber(reader.live.now()), ...PACE });
    let cuts = 0;
    const page = await reader.open(`/chambers/${id}`, {
      cut: (message) => message.startsWith('{"note":') && ++cuts === 1,
    });
    await page.locator('.verify.good').waitFor();
    await agent.joinChamber(id);
    await agent.start(id);
    for (let pass = 0; pass < 2; pass++) await agent.pass(id);
    await expectShown(page, '.phases .current', 'Commit');
    await expectShown(page, '.verify.good', '5 of 5 events checked by your browser: nothing is broken.');
    expect(cuts).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Live' }).waitFor();
  });
});

/** Returns the phase, the ends and the turn holder. */
function paceOf({ phase, ends, currentTurnAgent }: ChamberView) {
  return { phase: PHASE_NAMES[phase], ends: Object.values(ends), currentTurnAgent };
}

function paceOn(page: Page) {
  return page.locator('main').evaluate((main) => {
    const ends = [...main.querySelectorAll('.phases time')].slice(0, 5);
    return {
      phase: main.querySelector('.phases .current strong, .phases li:last-child.done strong').textContent,
      ends: ends.map((each) => each.getAttribute('datetime')),
      currentTurnAgent: main.querySelector('.now .agent')?.getAttribute('title') ?? null,
    };
  });
}
