// The outcome on the page of a settled chamber: the share of each idea, as a bar and in numbers, and its token or failure.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { newChamber, PHASE_MILLIS } from '../client/live-service.ts';
import { recordCommit } from '../kit/chambers.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { expectShown, HAS_CHROMIUM, newLabelled, PHONE, readerOfService } from './reader.ts';

/** The folder to which a run writes pictures of the section. */
const { OUTCOME_PICTURES } = process.env;
const NAMES = ['Ada', 'Bruno', 'Chiara', 'Dana', 'Emil'];
const IDEAS = ['TIDE', 'FOG', 'PIER', 'KELP'];
/** Each member's shares by idea; the last member does not reveal. */
const SHARES = [
  [6_000, 2_000, 0, 0],
  [5_000, 2_500, 0, 500],
  [7_000, 3_000, 0, 0],
  [1_000, 8_000, 0, 0],
  [0, 0, 10_000, 0],
] as const;

describe.skipIf(!HAS_CHROMIUM)('a settled chamber', { timeout: 120_000 }, () => {
  const reader = readerOfService();

  /** Plays a chamber until it waits for the deployment of its second graduated idea. */
  async function playUntilCommitted(): Promise<number> {
    const agents = await Promise.all(NAMES.map((label) => newLabelled(reader.live, label)));
    const [host] = agents as [(typeof agents)[number]];
    const topic = 'What should the harbour build next year?';
    const chamber = { ...newChamber(reader.live.now()), name: 'Harbour fund', topic, minBackersForGraduation: 2 };
    const { chamberId } = await host.createChamber(chamber);
    for (const agent of agents) await agent.joinChamber(chamberId);
    reader.live.advance(PHASE_MILLIS);
    for (const [index, ticker] of IDEAS.entries()) {
      const agent = agents[index] as typeof host;
      const name = ['Tide gauge', '=Fog "light", louder', 'A longer pier for the ferries', 'Kelp farm'][
        index
      ] as string;
      await agent.propose(chamberId, { name, ticker, description: `About ${ticker}.` });
      await agent.pass(chamberId);
    }
    reader.live.advance(2 * PHASE_MILLIS);
    for (const [index, agent] of agents.entries()) {
      const shares = SHARES[index] as readonly number[];
      const allocations = shares.map((bps, idea) => ({ ideaId: `idea-${idea + 1}`, bps }));
      await agent.commit(chamberId, allocations);
    }
    reader.live.advance(PHASE_MILLIS);
    for (const agent of agents.slice(0, 4)) await agent.reveal(chamberId);
    reader.live.advance(PHASE_MILLIS);
    await recordCommit(reader.live.service.forum, chamberId);
    await record(chamberId, {
      type: 'idea.deployed',
      payload: {
        ideaId: 'idea-1',
        tokenAddress: '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
        txHash: `0x${'00'.repeat(32)}`,
        graduatedAt: toTimestamp(reader.live.now()),
      },
    });
    return chamberId;
  }

  async function record(chamberId: number, fact: ServiceFact): Promise<void> {
    await reader.live.service.forum.submit({ operation: 'record', chamberId, fact });
  }

  it('the page shows the outcome as soon as it is final', async () => {
    const chamberId = await playUntilCommitted();
    const page = await reader.open(`/chambers/${chamberId}`, { look: { viewport: { width: 1280, height: 900 } } });
    await expectShown(page, '.now', 'Finished');
    expect(await page.locator('.outcome').count()).toBe(0);
    await record(chamberId, {
      type: 'idea.deploy_failed',
      payload: { ideaId: 'idea-2', txHash: null, reason: 'the ticker is taken' },
    });
    await expectShown(page, '.outcome h2', 'Outcome');
    const rows = await page.locator('.shares tbody tr').allInnerTexts();
    expect(rows.map((row) => row.replace(/\s+/g, ' ').trim())).toEqual([
      'TIDE Tide gauge by 1 Ada 47.5 % 4 backers, 2 needed token 0xfB691609…d359',
      'FOG =Fog "light", louder by 2 Bruno 38.8 % 4 backers, 2 needed no token: the ticker is taken',
      'KELP Kelp farm by 4 Dana 1.3 % 1 backer, 2 needed did not graduate',
      'PIER A longer pier for the ferries by 3 Chiara 0.0 % 0 backers, 2 needed did not graduate',
      'Abstained 12.5 %',
    ]);
    // Each backer has a part of the bar.
    expect(await page.locator('.shares tbody tr').first().locator('rect').count()).toBe(4);
    await expectShown(page, '.outcome', '4 of 5 members revealed an allocation, 1 committed to one and did not.');
    if (OUTCOME_PICTURES !== undefined) {
      await page.screenshot({ path: join(OUTCOME_PICTURES, 'wide.png') });
      for (const [name, look] of [
        ['dark', { colorScheme: 'dark', viewport: { width: 1280, height: 900 } }],
        ['phone', { viewport: { width: 390, height: 844 } }],
      ] as const) {
        const other = await reader.open(`/chambers/${chamberId}`, { look });
        await expectShown(other, '.outcome h2', 'Outcome');
        await other.screenshot({ path: join(OUTCOME_PICTURES, `${name}.png`) });
      }
    }
    const phone = await reader.open(`/chambers/${chamberId}`, { look: { viewport: PHONE } });
    await expectShown(phone, '.outcome h2', 'Outcome');
    const widths = await phone
      .locator('.shares .picture svg')
      .evaluateAll((bars) => bars.map((bar) => Math.round(bar.getBoundingClientRect().width)));
    expect(widths).toEqual(Array.from({ length: 5 }, () => widths[0]));
    // No more events will arrive.
    await expectShown(phone, '.replay .live', 'End');
    expect(await phone.locator('.live.on').count()).toBe(0);
    const top = async (selector: string) => (await phone.locator(selector).boundingBox())?.y ?? Number.NaN;
    expect(await top('.transcript')).toBeLessThan(await top('.verify'));
    // The outcome is above the replay.
    const { y = 0 } = (await page.locator('.outcome').boundingBox()) ?? {};
    expect(y).toBeLessThan(400);
    const [json, csv] = [await download('JSON'), await download('CSV')];
    expect(json.text).toBe(await (await fetch(`${reader.live.baseUrl}/chambers/${chamberId}/outcome`)).text());
    expect([json.name, csv.name]).toEqual([`chamber-${chamberId}-outcome.json`, `chamber-${chamberId}-outcome.csv`]);
    const lines = csv.text.split('\r\n');
    expect(lines[0]).toBe(
      'ideaId,ticker,name,proposer,backers,totalBps,shareBps,backersMissing,graduated,withdrawn,version,tokenAddress,failure',
    );
    expect(lines[2]).toMatch(
      /^idea-2,FOG,"'=Fog ""light"", louder",did:key:\w+,4,15500,\d+,0,true,false,1,,the ticker is taken$/,
    );
    expect(lines).toHaveLength(6);
    // At an earlier event there is no outcome.
    await page.getByRole('slider').focus();
    await page.keyboard.press('Home');
    await expect.poll(() => page.locator('.outcome').count()).toBe(0);

    async function download(name: string) {
      const waiting = page.waitForEvent('download');
      await page.locator('.outcome').getByRole('link', { name }).click();
      const downloaded = await waiting;
      return { name: downloaded.suggestedFilename(), text: await readFile(await downloaded.path(), 'utf8') };
    }
  });

  it('the browser computes the outcome of an exported file without the service', async () => {
    const chamberId = await playUntilCommitted();
    await record(chamberId, {
      type: 'idea.deploy_failed',
      payload: { ideaId: 'idea-2', txHash: null, reason: 'the ticker is taken' },
    });
    const file = join(temporaryFolder(), 'chamber.ndjson');
    await writeFile(file, await (await fetch(`${reader.live.baseUrl}/chambers/${chamberId}/events`)).text());
    const page = await reader.open('/');
    await page.locator('input[type=file]').setInputFiles(file);
    await expectShown(page, '.outcome h2', 'Outcome');
    const href = await page.locator('.outcome').getByRole('link', { name: 'JSON' }).getAttribute('href');
    const outcome = await (await fetch(`${reader.live.baseUrl}/chambers/${chamberId}/outcome`)).text();
    expect(decodeURIComponent(href?.split(',').slice(1).join(',') ?? '')).toBe(outcome);
  });
});
