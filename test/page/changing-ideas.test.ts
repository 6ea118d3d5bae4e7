// A chamber's page with amended and withdrawn ideas, with and without scripts.
import { describe, expect, it } from 'vitest';
import { newAgent, newChamber, PHASE_MILLIS } from '../client/live-service.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { TestService } from '../kit/test-service.ts';
import { DESK, expectShown, HAS_CHROMIUM, readerOfService } from './reader.ts';

/** The file to which a run writes a screenshot of the page. */
const { PICTURE } = process.env;

async function htmlOf(service: TestService, chamberId: number): Promise<string> {
  const response = await service.app.request(`/chambers/${chamberId}`, { headers: { accept: 'text/html' } }, {});
  return response.text();
}

describe('a page without scripts', () => {
  it('a page without scripts shows versions and changes of ideas, struck-through withdrawn ideas, and straw polls', async () => {
    const service = new TestService();
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    const move = (path: string, body: unknown) => service.must('POST', `/chambers/${id}/${path}`, { by, body });
    await enterPhase(service, id, 'PROPOSAL');
    await move('propose', { name: 'Rain', ticker: 'RAIN', description: 'Wet.' });
    await move('propose', { name: 'Snow', ticker: 'SNOW' });
    await move('withdraw', { ideaId: 'idea-2' });
    await enterPhase(service, id, 'DEBATE');
    await move('debate', { ideaId: 'idea-1', comment: 'Yes.', stance: 'for' });
    await move('amend', { ideaId: 'idea-1', name: 'More rain', description: '<b>Wetter.</b>' });
    await move('debate', { comment: 'Well.', replyTo: 6 });
    const html = await htmlOf(service, id);
    expect(html).toMatch(/Version 2: name and description <a href="#e7">#7<\/a>/);
    expect(html).toMatch(/<s><bdi[^>]*>Snow<\/bdi><\/s>/);
    expect(html).toContain('Straw poll: 1 outdated');
    expect(html).toContain('&lt;b&gt;Wetter.');
    expect(html).toMatch(/in reply to <a class="id" href="#e6">#6<\/a>/);
    expect(html).toMatch(/↳ answered in <a class="id" href="#e8">#8<\/a>/);
  });

  it('a page without scripts shows that a chamber lacks or lacked members', async () => {
    const service = new TestService();
    const id = await openChamber(service, [await service.agent()], { minMembers: 2 });
    expect(await htmlOf(service, id)).toContain('1 member so far, 2 needed when the lobby ends');
    await enterPhase(service, id, 'PROPOSAL');
    const sentence = 'The chamber did not go ahead: 1 of at least 2 members joined.';
    expect(await htmlOf(service, id)).toContain(sentence);
    await enterPhase(service, id, 'COMMITTED');
    expect(await htmlOf(service, id)).toContain(sentence);
  });
});

describe.skipIf(!HAS_CHROMIUM)('a browser', () => {
  const reader = readerOfService();

  it('a browser follows amendments, stances, replies and withdrawals', { timeout: 60_000 }, async () => {
    const [ann, bob] = [await newAgent(reader.live), await newAgent(reader.live)];
    const { chamberId } = await ann.createChamber({ ...newChamber(reader.live.now()), name: 'Weather desk' });
    for (const agent of [ann, bob]) await agent.joinChamber(chamberId);
    reader.live.advance(PHASE_MILLIS);
    await ann.propose(chamberId, { name: 'Rain', ticker: 'RAIN', description: 'Pays out when it does not rain.' });
    await ann.propose(chamberId, { name: 'Rain again', ticker: 'RAIN2' });
    await ann.withdraw(chamberId, 'RAIN2');
    await ann.pass(chamberId);
    await bob.propose(chamberId, { name: 'Snow', ticker: 'SNOW', description: 'Pays out when it snows.' });
    const page = await reader.open(`/chambers/${chamberId}`, { look: { viewport: DESK } });
    await expectShown(page, '.idea.withdrawn s', 'Rain again');
    reader.live.advance(PHASE_MILLIS);
    await ann.debate(chamberId, { ideaId: 'SNOW', comment: 'Where does it snow?', stance: 'against' });
    await ann.pass(chamberId);
    await bob.debate(chamberId, { ideaId: 'RAIN', comment: 'Two stations.', stance: 'for', replyTo: 4 });
    await bob.amend(chamberId, { ideaId: 'SNOW', description: 'Pays out when it snows in the Alps.' });
    await bob.pass(chamberId);
    await ann.debate(chamberId, { ideaId: 'SNOW', comment: 'Better.', stance: 'undecided', replyTo: 9 });
    await expectShown(page, '.idea >> nth=0', 'Straw poll: 1 for');
    await expectShown(page, '.idea >> nth=2', 'Version 2: description');
    await expectShown(page, '.idea >> nth=2', 'Straw poll: 1 undecided');
    await expectShown(page, '#e9', '↳ answered in');
    await page.locator('.verify.good').waitFor();
    if (PICTURE !== undefined) await page.screenshot({ path: PICTURE, fullPage: true });
  });
});
