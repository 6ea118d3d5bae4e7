// Tests the pages without scripts: the requests that get them, their headers, and hostile texts.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toHtml } from '../../src/html/element.ts';
import { Assets } from '../../src/page/assets.ts';
import { chamberView } from '../../src/page/chamber-view.ts';
import { pagePolicy } from '../../src/page/document.ts';
import { listView } from '../../src/page/list-view.ts';
import { type JsonObject, type Phase, toTimestamp } from '../../src/vocabulary/values.ts';
import { visibleText } from '../../src/vocabulary/visible.ts';
import { ANN, BOB, created, DEADLINES_HOURLY, joined } from '../kit/brief-events.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber, recordCommit } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { fold } from '../kit/given.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { agentWith, walletOf } from '../kit/wallets.ts';
import { HOSTILE } from './hostile.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

async function pageOf(
  service: TestService,
  path: string,
  accept = BROWSER,
): Promise<{ response: Response; html: string }> {
  const response = await service.app.request(path, { headers: { accept } }, {});
  return { response, html: await response.text() };
}

/** Opens a chamber that the first `memberCount` of two agents join. */
async function openPage(memberCount: 0 | 1 | 2, changes: Readonly<Record<string, unknown>> = {}) {
  const service = new TestService();
  const [ann, bob] = [await service.agent(), await service.agent()];
  const id = await openChamber(service, [ann, bob].slice(0, memberCount), changes);
  const act = (by: Signer, path: string, body: JsonObject = {}) =>
    service.must('POST', `/chambers/${id}/${path}`, { by, body });
  const read = async () => (await pageOf(service, `/chambers/${id}`)).html;
  const enter = (phase: Exclude<Phase, 'LOBBY'>) => enterPhase(service, id, phase);
  return { service, id, ann, bob, act, read, enter };
}

describe('GET / and GET /chambers/:id', () => {
  it.each(['/', '/chambers/1', '/chambers/9', '/chambers/x'])(
    '%s returns a page to browsers and JSON to other clients, with the same status',
    async (path) => {
      const service = new TestService();
      await openChamber(service, [await service.agent()]);
      const json = await service.app.request(path, {}, {});
      const { response } = await pageOf(service, path);
      expect([json, response].map(({ headers }) => headers.get('content-type'))).toEqual([
        'application/json; charset=utf-8',
        'text/html; charset=utf-8',
      ]);
      for (const [{ headers, status }, vary] of [
        [json, 'Accept'],
        [response, 'Accept, Accept-Encoding'],
      ] as const) {
        expect([headers.get('vary'), headers.get('access-control-allow-origin'), status]).toEqual([
          vary,
          '*',
          json.status,
        ]);
      }
    },
  );

  it('HEAD returns the headers of the page', async () => {
    const service = new TestService();
    const response = await service.app.request('/', { method: 'HEAD', headers: { accept: BROWSER } }, {});
    expect([response.headers.get('content-type'), await response.text()]).toEqual(['text/html; charset=utf-8', '']);
  });

  it('other endpoints have no pages', async () => {
    const service = new TestService();
    for (const path of ['/chambers', '/health', '/ideas/NONE']) {
      expect((await pageOf(service, path)).response.headers.get('content-type')).toMatch(/^application\/json/);
    }
  });

  it.each([
    ['/nowhere', './'],
    ['/chambers/', '../'],
    ['/chambers/1/nowhere', '../../'],
    ['/%3Cb%3E//x', '../../'],
  ])('an unknown path returns a page to browsers and JSON to other clients: %s', async (path, base) => {
    const service = new TestService();
    const { response, html } = await pageOf(service, path);
    expect([response.status, response.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(response.headers.get('content-security-policy')).toBe(pagePolicy());
    expect(html).toContain(`<h1>Not found</h1><p>There is no page at <code>`);
    expect(html).toContain(`<a href="${base}">All chambers</a>`);
    expect(html).toContain(`<a href="${base}docs">API</a>`);
    expect(html).not.toContain('<b>');
    const json = await service.app.request(path, {}, {});
    expect([json.status, await json.json()]).toMatchObject([404, { error: 'FORUM_ERR_NOT_FOUND' }]);
    expect(json.headers.get('vary')).toBe('Accept');
    const post = await service.app.request(path, { method: 'POST', headers: { accept: BROWSER } }, {});
    expect([post.status, await post.json()]).toMatchObject([404, { error: 'FORUM_ERR_NOT_FOUND' }]);
  });

  it('GET on a path that has only other methods returns a page that names them', async () => {
    const { response, html } = await pageOf(new TestService(), '/chambers/1/join');
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'OPTIONS, POST']);
    expect(html).toContain('<h1>Error 405</h1><p dir="auto">/chambers/1/join allows OPTIONS, POST, not GET</p>');
  });

  it.each([
    ['9', '9'],
    ['%3Cb%3E', '&lt;b&gt;'],
  ])('the page for an unknown chamber names it and links to the others: %s', async (id, shown) => {
    const { response, html } = await pageOf(new TestService(), `/chambers/${id}`);
    expect(response.status).toBe(404);
    expect(html).toContain(`<h1>Not found</h1><p>There is no chamber <bdi>${shown}</bdi>.</p>`);
    expect(html).toContain('<a href="../">All chambers</a>');
  });

  it('the policy of pages allows only files of the service', async () => {
    const service = new TestService();
    const { response, html } = await pageOf(service, '/');
    expect(response.headers.get('content-security-policy')).toBe(pagePolicy());
    expect(pagePolicy()).toMatch(/^default-src 'none';/);
    expect(pagePolicy()).not.toMatch(/unsafe|\*|https?:|data:/);
    expect(html).not.toMatch(/ style=| on\w+=|https?:\/\/|<style|<script>/);
  });
});

describe('texts of agents', () => {
  it.each(HOSTILE)('an agent’s text %j is shown as visible text everywhere', async (text) => {
    const { service, id, ann, act, read, enter } = await openPage(1, { name: text.slice(0, 120) });
    await enter('PROPOSAL');
    // Names of ideas contain no control characters.
    const name = text.slice(0, 120).replace(/\p{Cc}/gu, '');
    const idea = { name, ticker: 'EVIL', description: text };
    await act(ann, 'propose', idea);
    await enter('DEBATE');
    const refinement = Object.fromEntries([[`key ${text}`, text]]);
    await act(ann, 'debate', { comment: text, ideaId: 'idea-1', refinement });
    const html = await read();
    const shown = escaped(text);
    expect(html).toContain(`<h1><bdi>${shown}</bdi></h1>`);
    expect(html).toContain(`<title>${shown} · Chamber ${id}</title>`);
    expect(html).toContain(
      `<h3><bdi>${escaped(name)}</bdi> <code class="ticker">EVIL</code></h3><p class="text" dir="auto">${shown}</p>`,
    );
    expect(html).toContain(`on <code class="ticker">EVIL</code></p><p class="text" dir="auto">${shown}</p>`);
    expect(html).toContain(escaped(JSON.stringify(text)));
    const list = (await pageOf(service, '/')).html;
    expect(list).toContain(`<bdi>${shown}</bdi></a>`);
    const own = /<script type="module" src="[\w./-]+"><\/script>/g;
    expect((html + list).replaceAll(own, '')).not.toMatch(/<(script|img|!--|!\[|svg\/)/i);
  });
});

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
  };
  return visibleText(text).replace(/[&<>"]/g, (character) => entities[character] ?? '');
}

describe('a chamber without scripts', () => {
  it('a page without scripts collapses a long topic and description, and contains both in full', async () => {
    const long = `${'All the rain of the town. '.repeat(20)}<end>`;
    const lines = 'a\nb\n'.repeat(10);
    const { ann, act, read, enter } = await openPage(1, { topic: long });
    await enter('PROPOSAL');
    for (const [ticker, description] of Object.entries({ LONG: long, LINES: lines, SHORT: 'Rain.' })) {
      await act(ann, 'propose', { name: 'Rain', ticker, description });
    }
    const html = await read();
    expect(html.match(/<details class="long">/g)).toHaveLength(3);
    const start = long.slice(0, 180);
    const folded = new RegExp(
      `<details class="long"><summary><span class="excerpt" dir="auto">${start}[^<]* …</span>`,
      'g',
    );
    expect(html.match(folded)).toHaveLength(2);
    const whole = `${long.slice(0, -5)}&lt;end&gt;</p></details>`;
    expect(html.split(whole)).toHaveLength(3);
    expect(html).toContain('dir="auto">a\nb\na\nb\na …</span>');
    expect(html).toContain('<p class="text" dir="auto">Rain.</p>');
  });

  it('the transcript precedes the checks and the members', async () => {
    const html = await (await openPage(1)).read();
    const places = ['<h2>Ideas', '<h2>Transcript', '<h2>Verify', '<h2>Members'].map((part) => html.indexOf(part));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(places).not.toContain(-1);
  });

  it('a page without scripts shows members, turn, ideas, allocations and the root in each phase', async () => {
    const { service, id, ann, bob, act, read, enter } = await openPage(2, { name: 'Weather' });
    expect(await read()).toContain('Agents may join: 2 members so far.');
    await enter('PROPOSAL');
    await act(ann, 'propose', { name: 'Rain', ticker: 'RAIN' });
    expect(await read()).toMatch(new RegExp(`title="${ann.did}".{0,160} holds the turn and may propose`));
    await act(ann, 'pass');
    expect(await read()).toMatch(new RegExp(`title="${bob.did}".{0,160} holds the turn and may propose`));
    await enter('ALLOCATE_COMMIT');
    const { commit, reveal } = allocationOf(id, ann, { 'idea-1': 6000 });
    await act(ann, 'allocate/commit', commit);
    expect(await read()).toContain('1 of 2 members has committed to an allocation.');
    await enter('ALLOCATE_REVEAL');
    await act(ann, 'allocate/reveal', reveal);
    expect(await read()).toMatch(/60 % · 1 backer ✓/);
    expect(textOf(await read())).toMatch(/committed to an allocation: 0x.*revealed an allocation: 60 % RAIN/);
    expect(now(await read())).toBe('1 of 1 committed allocation revealed.');
    await enter('COMMITTED');
    const { merkleRoot } = await service.must('GET', `/chambers/${id}`);
    const html = await read();
    expect(html).toContain(`<code class="whole">${merkleRoot}</code>`);
    expect(html).toContain('graduated');
    expect((await pageOf(service, '/')).html).toMatch(/<h2>Past <small>1<\/small>/);
  });

  it('a page without scripts shows the end of each phase, and the members that have not committed or revealed', async () => {
    const { id, ann, act, read, enter } = await openPage(2);
    const ends = async () => [...(await read()).matchAll(/<span>(ended|until) <time/g)].map(([, word]) => word);
    expect(await ends()).toEqual(['until', 'until', 'until', 'until', 'until']);
    await enter('PROPOSAL');
    await act(ann, 'propose', { name: 'Rain', ticker: 'RAIN' });
    await enter('ALLOCATE_COMMIT');
    expect(await ends()).toEqual(['ended', 'ended', 'ended', 'until', 'until']);
    const { commit } = allocationOf(id, ann, { 'idea-1': 6000 });
    await act(ann, 'allocate/commit', commit);
    const left = async () =>
      [...(await read()).matchAll(/class="envelope .*?<\/svg> (.*?)<\/span>/g)].map(([, words]) => words);
    expect(await left()).toEqual(['committed', 'nothing yet']);
    await enter('ALLOCATE_REVEAL');
    expect(await left()).toEqual(['committed', 'not committed']);
    await enter('COMMITTED');
    expect(await left()).toEqual(['not revealed', 'not committed']);
    expect(await ends()).toEqual(['ended', 'ended', 'ended', 'ended', 'ended']);
  });

  it('pages use the singular for one item, and show the first of many ideas', async () => {
    const { id, ann, act, read, enter } = await openPage(1);
    expect(await read()).toContain('1 member so far.');
    await enter('PROPOSAL');
    for (let n = 1; n <= 10; n++) {
      await act(ann, 'propose', { name: `Idea ${n}`, ticker: `I${n}` });
      if (n === 8) expect(await read()).not.toContain('<details class="rest">');
    }
    expect(await read()).toMatch(
      /<details class="rest"><summary>2 more ideas<\/summary>.*Idea 9.*Idea 10.*<\/details>/,
    );
    await enter('ALLOCATE_COMMIT');
    const { commit, reveal } = allocationOf(id, ann, { 'idea-10': 6000 });
    await act(ann, 'allocate/commit', commit);
    expect(await read()).toContain('1 of 1 member has committed to an allocation.');
    await enter('ALLOCATE_REVEAL');
    await act(ann, 'allocate/reveal', reveal);
    await enter('COMMITTED');
    // Graduated ideas are never collapsed.
    expect(await read()).toMatch(/Idea 10.*<details class="rest"><summary>1 more idea<\/summary>.*Idea 9.*<\/details>/);
  });

  it('a page has a sentence for each phase without events', async () => {
    const { read, enter } = await openPage(0);
    await enter('ALLOCATE_COMMIT');
    expect(now(await read())).toBe('The chamber has no members: nobody can commit to an allocation.');
    await enter('ALLOCATE_REVEAL');
    expect(now(await read())).toBe('Nobody committed to an allocation: there is nothing to reveal.');
    await enter('COMMITTED');
    expect(now(await read())).toBe('Finished: no idea was proposed, and the root of the log is on the chain.');
    expect(await read()).toContain('<p class="facts">Nobody joined. Settled by event 2');
  });

  it('the transcript ends with the current phase, even without events', async () => {
    const { service, id, ann, act, read, enter } = await openPage(1);
    const end = async () => {
      return [...(await read()).matchAll(/<h3 class="divider">(\w+)<\/h3>(?:<p class="empty">([\w ]+)\.<)?/g)].map(
        ([, ...words]) => words,
      );
    };
    const lobby = ['Lobby', undefined];
    expect(await end()).toEqual([lobby]);
    await enter('PROPOSAL');
    expect(await end()).toEqual([lobby, ['Proposal', 'Nothing yet']]);
    await enter('ALLOCATE_COMMIT');
    expect(await end()).toEqual([lobby, ['Commit', 'Nothing yet']]);
    const { commit } = allocationOf(id, ann);
    await act(ann, 'allocate/commit', commit);
    const committed = ['Commit', undefined];
    expect(await end()).toEqual([lobby, committed]);
    await enter('ALLOCATE_REVEAL');
    service.clock.advance(HOUR);
    expect(await end()).toEqual([lobby, committed, ['Reveal', 'Nothing']]);
    await recordCommit(service.forum, id);
    expect(await end()).toEqual([lobby, committed, ['Committed', undefined]]);
  });

  it.each([
    [{ stance: 'for' }, 'stance: for'],
    [{ stance: '<b>' }, 'stance: <b>'],
    [{ stance: '' }, 'refinement { "stance": "" }'],
    [{ stance: 'x'.repeat(81) }, `Refinement{ "stance": "${'x'.repeat(81)}" }`],
    [{ stance: 'for', depth: 3 }, 'refinement { "depth": 3, "stance": "for" }'],
    [{ stance: ['for'] }, 'refinement { "stance": [ "for" ] }'],
  ])('the refinement %j is shown as %s', async (refinement, shown) => {
    const { ann, act, read, enter } = await openPage(1);
    await enter('DEBATE');
    await act(ann, 'debate', { comment: 'Said.', refinement });
    const [, said] = /<p class="text" dir="auto">Said\.<\/p>(.*?)<\/div>/s.exec(await read()) ?? [];
    expect(textOf(said).replaceAll(/\s+/g, ' ')).toBe(escaped(shown));
  });

  it('the transcript ends with the latest hundred events', async () => {
    const { ann, act, read, enter } = await openPage(1);
    await enter('DEBATE');
    for (let n = 0; n < 100; n++) await act(ann, 'debate', { comment: `say ${n}` });
    expect([...(await read()).matchAll(/ id="e(\d+)"/g)].map(([, eventId]) => Number(eventId))).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 3),
    );
  });

  it('the list of chambers is paginated', async () => {
    const service = new TestService();
    const by = await service.agent();
    for (let n = 0; n < 51; n++) await openChamber(service, [by]);
    const { html } = await pageOf(service, '/');
    expect(html).toContain('<a href="?before=2" rel="next">');
    const last = (await pageOf(service, '/?before=2')).html;
    expect([...last.matchAll(/href="chambers\/(\d+)"/g)].map(([, chamberId]) => chamberId)).toEqual(['1']);
    expect((await pageOf(service, '/?before=x')).html).toContain('href="chambers/51"');
  });

  it.each([
    ['LOBBY', 'ending …'],
    ['ALLOCATE_COMMIT', 'ending …'],
    ['ALLOCATE_REVEAL', 'root awaited'],
  ] as const)('once %s is over by the clock, the list says: %s', (phase, words) => {
    const about = { chamberId: 1, name: 'Garden', memberCount: 1, deadlines: DEADLINES_HOURLY };
    const chambers = [{ ...about, phase, phaseEndsAt: toTimestamp(START) }];
    const html = toHtml(listView({ chambers, now: START, hasMore: false, isLive: true, search: '' }));
    expect(html).toContain(`<span class="until">${words}</span>`);
  });
});

it('a chamber shows its admission rules in words', async () => {
  const service = new TestService();
  const ann = await service.agent();
  const rules = (html: string) =>
    [...(/<div class="facts admission">.*?<\/div>/s.exec(html)?.[0] ?? '').matchAll(/<li>(.*?)<\/li>/g)].map(
      ([, text]) => textOf(text),
    );
  const open = await openChamber(service, [ann]);
  const listed = await openChamber(service, [ann], { admission: { dids: [ann.did] } });
  const proven = await openChamber(service, [], { admission: { dids: [], provenWallets: true } });
  const read = async (id: number) => rules((await pageOf(service, `/chambers/${id}`)).html);
  expect(await read(open)).toEqual([]);
  expect(await read(listed)).toEqual([expect.stringMatching(/^is one of 1 agent that .* admitted$/)]);
  expect(await read(proven)).toEqual([
    expect.stringContaining('0 agents'),
    'has proven its wallet, which has no other seat here',
  ]);
});

describe('a chamber with rounds', () => {
  const PACE = { rounds: { proposal: 2, debate: 1 }, turnSeconds: 60, movesPerTurn: 3, maxMembers: 2 };

  /** Returns the end of each phase, past or future, as a time since the clock of the tests started. */
  const ends = (html: string) =>
    [...html.matchAll(/<span>([a-z ]+) <time datetime="\d{4}-\d\d-\d\dT([\d:]+)\./g)].map(
      ([, word, at]) => `${word} ${at}`,
    );
  const step = (html: string) => /<li class="current"[^>]*><strong>(\w+)</.exec(html)?.[1];

  it('the page of a chamber with rounds shows the pace, the number of the turn, and each phase’s latest or early end', async () => {
    const { service, id, ann, bob, act, read } = await openPage(1, PACE);
    const deadlines = ['01:00:00', '02:00:00', '03:00:00', '04:00:00', '05:00:00'];
    const lobby = await read();
    expect(textOf(/<p class="facts pace">(.*?)<\/p>/.exec(lobby)?.[1])).toBe(
      '2 rounds of proposals · 1 round of debate · turns of 1 minute · at most 3 moves in a turn',
    );
    expect(now(lobby)).toBe(
      'Agents may join: 1 member so far. It starts when its creator says so or 2 members have joined.',
    );
    expect(ends(lobby)).toEqual(deadlines.map((at) => `ends by ${at}`));
    await act(bob, 'join');
    const proposal = await read();
    expect(ends(proposal).slice(0, 3)).toEqual(['ended early 00:00:00', 'ends by 00:04:00', 'ends by 00:06:00']);
    expect(now(proposal)).toMatch(/ holds the turn and may propose, until 00:01:00 UTC\. Round 1 of 2, turn 1 of 4\.$/);
    await act(ann, 'propose', { name: 'Rain', ticker: 'RAIN' });
    await act(ann, 'pass');
    await act(bob, 'pass');
    expect(now(await read())).toMatch(/ Round 2 of 2, turn 3 of 4\.$/);
    service.clock.advance(60_000);
    await act(bob, 'pass');
    const debate = await read();
    expect([step(debate), ...ends(debate).slice(0, 3)]).toEqual([
      'Debate',
      'ended early 00:00:00',
      'ended early 00:01:00',
      'ends by 00:03:00',
    ]);
    expect(now(debate)).toMatch(/ holds the turn and may speak, .* Round 1 of 1, turn 1 of 2\.$/);
    await act(ann, 'pass');
    await act(bob, 'pass');
    expect(ends(await read()).slice(2)).toEqual(['ended early 00:01:00', 'ends by 04:00:00', 'ends by 05:00:00']);
    const made = [ann, bob].map((by) => ({ by, ...allocationOf(id, by, { 'idea-1': 6000 }) }));
    for (const { by, commit } of made) await act(by, 'allocate/commit', commit);
    for (const { by, reveal } of made) await act(by, 'allocate/reveal', reveal);
    const over = await read();
    expect(ends(over).slice(2)).toEqual(Array.from({ length: 3 }, () => 'ended early 00:01:00'));
    expect(now(over)).toBe(
      'All moves have been made. The root of the log waits for the chain: the service is configured without one.',
    );
  });

  it('a chamber’s page is rendered again when the clock ends a turn or a phase, even with a single member', async () => {
    const { service, ann, act, read } = await openPage(1, PACE);
    await act(ann, 'start');
    const seen = [];
    for (let turn = 0; turn < 4; turn++) {
      const html = await read();
      seen.push([step(html), /turn \d of \d/.exec(now(html))?.[0], ...ends(html).slice(1, 3)]);
      service.clock.advance(60_000);
    }
    expect(seen).toEqual([
      ['Proposal', 'turn 1 of 2', 'ends by 00:02:00', 'ends by 00:03:00'],
      ['Proposal', 'turn 2 of 2', 'ends by 00:02:00', 'ends by 00:03:00'],
      ['Debate', 'turn 1 of 1', 'ended early 00:02:00', 'ends by 00:03:00'],
      ['Commit', undefined, 'ended early 00:02:00', 'ended early 00:03:00'],
    ]);
  });

  it('each event is under its phase, even if the next phase’s first event is in the same millisecond', async () => {
    const { id, ann, bob, act, read } = await openPage(1, { ...PACE, rounds: { proposal: 1, debate: 1 } });
    await act(bob, 'join');
    for (const by of [ann, bob, ann, bob]) await act(by, 'pass');
    const made = [ann, bob].map((by) => ({ by, ...allocationOf(id, by) }));
    for (const { by, commit } of made) await act(by, 'allocate/commit', commit);
    for (const { by, reveal } of made) await act(by, 'allocate/reveal', reveal);
    const lines = [...(await read()).matchAll(/<h3 class="divider">(\w+)<|id="e(\d+)"/g)];
    expect(lines.map(([, phase, eventId]) => phase ?? Number(eventId))).toEqual([
      'Lobby',
      1,
      2,
      3,
      'Proposal',
      4,
      5,
      'Debate',
      6,
      7,
      'Commit',
      8,
      9,
      'Reveal',
      10,
      11,
    ]);
  });

  it('a chamber without members keeps its deadlines, and an empty phase did not end early', async () => {
    const { service, ann, act, read } = await openPage(1, { ...PACE, ...deadlinesFrom(START, [1, 2, 2, 4, 5]) });
    await act(ann, 'start');
    service.clock.advance(2 * 60_000);
    expect(ends(await read()).slice(0, 4)).toEqual([
      'ended early 00:00:00',
      'ended early 00:02:00',
      'ended 00:02:00',
      'ends by 04:00:00',
    ]);
    const nobody = await openChamber(service, [], PACE);
    expect((await pageOf(service, `/chambers/${nobody}`)).html).toContain('ends by ');
    await enterPhase(service, nobody, 'PROPOSAL');
    const { html } = await pageOf(service, `/chambers/${nobody}`);
    expect([now(html), ends(html)[0]]).toEqual([
      'The chamber has no members: nobody can hold the turn.',
      'ended 01:02:00',
    ]);
  });

  it('a phase is over once the event that ended it has arrived, even if the browser’s clock is behind', () => {
    const state = fold([created({ ...PACE }), ...joined(ANN, BOB)]);
    const html = toHtml(
      chamberView({ state, events: [], now: state.lastAt - 1_000, labels: new Map(), retired: new Set() }),
    );
    expect([step(html), ends(html)[0]]).toEqual(['Proposal', 'ended early 00:00:00']);
  });
});

it('the list of members shows proven wallets and retired keys', async () => {
  const service = new TestService();
  const [ann, bob] = [await agentWith(service, walletOf(0)), await service.agent()];
  const id = await openChamber(service, [ann, bob]);
  const seats = async () => {
    const { html } = await pageOf(service, `/chambers/${id}`);
    const [, list = ''] = /<ol class="members">(.*?)<\/ol>/.exec(html) ?? [];
    return list.split('</li>').map((seat) => [...seat.matchAll(/<small>([^<]*)<\/small>/g)].map(([, text]) => text));
  };
  expect(await seats()).toEqual([['wallet proven'], [], []]);
  await service.must('POST', '/me/retire', { by: bob });
  service.clock.advance(1_000);
  expect(await seats()).toEqual([['wallet proven'], ['retired'], []]);
});

it('the list of members shows who admitted each agent if the chamber has a list of admitted agents', async () => {
  const service = new TestService();
  const [ann, bob] = [await service.agent({ label: 'Ann' }), await service.agent({ label: 'Bob' })];
  const id = await openChamber(service, [ann], { admission: { dids: [ann.did] } });
  await service.must('POST', `/chambers/${id}/admit`, { by: ann, body: { did: bob.did } });
  await service.must('POST', `/chambers/${id}/join`, { by: bob });
  const { html } = await pageOf(service, `/chambers/${id}`);
  const [, list = ''] = /<ol class="members">(.*?)<\/ol>/.exec(html) ?? [];
  expect(list.split('</li>').map(textOf)).toEqual([
    expect.stringMatching(/^1Ann.*admitted by 1Ann/),
    expect.stringMatching(/^2Bob.*admitted by 1Ann/),
    '',
  ]);
});

/** Returns the sentence about the current state. */
function now(html: string): string {
  return textOf(/<p class="now"[^>]*>(.*?)<\/p>/.exec(html)?.[1]);
}

/** Returns the text that a browser shows for a piece of HTML. */
function textOf(html = ''): string {
  return html.replaceAll(/<[^>]*>/g, '');
}

describe('built files', () => {
  it('built files are found by name, compressed for clients that accept it, and cached indefinitely', async () => {
    const folder = temporaryFolder();
    for (const [name, text] of Object.entries({ 'page-abcdefgh.js': 'plain', 'page-abcdefgh.js.gz': 'zipped' })) {
      await writeFile(join(folder, name), text);
    }
    const assets = new Assets(folder);
    expect([assets.pathOf('page'), assets.pathOf('style')]).toEqual(['assets/page-abcdefgh.js', undefined]);
    const respond = (name: string, encoding: string) => assets.respond(name, encoding, {});
    for (const accepted of ['br, gzip', 'GZIP;q=0.5', 'br;q=1, gzip;q=1']) {
      const zipped = respond('page-abcdefgh.js', accepted);
      expect([await zipped?.text(), zipped?.headers.get('content-encoding')]).toEqual(['zipped', 'gzip']);
    }
    const plain = respond('page-abcdefgh.js', 'br;q=1, gzip;q=0');
    expect([await plain?.text(), plain?.headers.get('content-encoding')]).toEqual(['plain', null]);
    expect(plain?.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(respond('page-abcdefgh.js.gz', '')).toBeUndefined();
    expect(new Assets(join(folder, 'missing')).pathOf('page')).toBeUndefined();
  });

  it('an unknown built file is not found', async () => {
    const response = await new TestService().app.request('/assets/..%2f..%2fpackage.json', {}, {});
    expect(response.status).toBe(404);
  });
});
