// Invisible characters and those that move a cursor are never shown: tests every such code point of Unicode, on every surface
// that shows text of others.
import { describe, expect, it, vi } from 'vitest';
import type { ChamberState } from '../projections/chamber.ts';
import { toText } from '../src/audit/report/text.ts';
import { narrate } from '../src/cli/narrate.ts';
import { members, print, printError, printNotice, table } from '../src/cli/output.ts';
import { ClientError } from '../src/client/index.ts';
import { prettyLine } from '../src/diagnostics/log-format.ts';
import { h, toHtml } from '../src/html/element.ts';
import { createReadingHandler } from '../src/mcp/reading-server.ts';
import type { ChamberEvent } from '../src/vocabulary/events.ts';
import { visibleJson, visibleLine, visibleText } from '../src/vocabulary/visible.ts';
import { enterPhase, openChamber } from './kit/chambers.ts';
import { TestService } from './kit/test-service.ts';

const KINDS = ['Cc', 'Cf', 'Zl', 'Zp', 'Cs', 'Bidi_Control', 'Variation_Selector', 'Default_Ignorable_Code_Point'];
const UNSEEN = new RegExp(`[${KINDS.map((kind) => `\\p{${kind}}`).join('')}]`, 'u');
const CODE_POINTS = Array.from({ length: 0x11_0000 }, (_, code) => code).filter((code) =>
  UNSEEN.test(String.fromCodePoint(code)),
);
const ALL = CODE_POINTS.map((code) => String.fromCodePoint(code));
/** These texts exclude lone surrogates, which no JSON of a service holds. */
const SENDABLE = ALL.filter((character) => character.isWellFormed());
const JOINED = `a${SENDABLE.join('b')}c`;

const unseenIn = (text: string) => [...text.replaceAll('\n', '')].filter((character) => UNSEEN.test(character));

describe('the functions for visible text', () => {
  it('visibleLine removes or replaces every invisible character', () => {
    expect(ALL.length).toBeGreaterThan(4_000);
    const left = ALL.filter((character) => !['ab', 'a b'].includes(visibleLine(`a${character}b`)));
    expect(left).toEqual([]);
  });

  it('visibleText normalises line breaks and removes every other invisible character', () => {
    expect(visibleText('a\r\nb\rc\nd\u2028e\u0085f\u000bg')).toBe('a\nb\nc\nd\ne\nf\ng');
    const left = ALL.filter((character) => !['ab', 'a b', 'a\nb'].includes(visibleText(`a${character}b`)));
    expect(left).toEqual([]);
  });

  it('visibleJson escapes invisible characters without changing the value', () => {
    expect(unseenIn(visibleJson({ [JOINED]: JOINED }))).toEqual([]);
    expect(JSON.parse(visibleJson({ [JOINED]: JOINED }))).toEqual({ [JOINED]: JOINED });
  });

  it.each(['Grüße, 世界! مرحبا עולם 😀 é Zwölf', 'e\u0301 हिन्दी'])(
    'visibleText does not change other text: %s',
    (text) => {
      expect(visibleText(text)).toBe(text);
    },
  );
});

describe('invisible characters', () => {
  it('the page shows no invisible characters', () => {
    const html = toHtml(h('p', { title: JOINED }, JOINED, h('bdi', {}, JOINED)));
    expect(unseenIn(html)).toEqual([]);
  });

  it('the command line prints no invisible characters, with and without --json', () => {
    const printed: string[] = [];
    for (const name of ['log', 'error'] as const) {
      vi.spyOn(console, name).mockImplementation((text: string) => void printed.push(text));
    }
    print(true, { [JOINED]: JOINED }, []);
    for (const isJson of [true, false]) {
      printError(isJson, new ClientError('FORUM_ERR_CONFLICT', JOINED));
      printNotice(isJson, JOINED);
    }
    const event = {
      ...EVENT,
      did: JOINED,
      payload: { ideaId: null, comment: JOINED, refinement: { [JOINED]: JOINED } },
    };
    const texts = [...members({ name: JOINED }), ...table(['NAME'], [[JOINED]]), narrate(event, STATE, () => JOINED)];
    expect([...printed, ...texts].flatMap(unseenIn)).toEqual([]);
  });

  it('the auditor’s report shows no invisible characters', () => {
    const report = { source: JOINED, verdict: 'broken', sentence: JOINED, problems: [JOINED], chambers: [] } as const;
    expect(unseenIn(toText(report, true))).toEqual([]);
  });

  it('the service’s human-readable log shows no invisible characters', () => {
    const line = JSON.stringify({ time: 0, level: 30, msg: JOINED, name: JOINED, err: { stack: JOINED } });
    expect(unseenIn(prettyLine(line))).toEqual([]);
  });

  it('transcripts show no invisible characters, in both forms', async () => {
    const service = new TestService();
    const ann = await service.agent();
    const id = await openChamber(service, [ann], { name: 'a\u200bb\u202e' });
    await enterPhase(service, id, 'DEBATE');
    for (let at = 0; at < SENDABLE.length; at += 1_000) {
      const comment = `a${SENDABLE.slice(at, at + 1_000).join('b')}c`;
      await service.must('POST', `/chambers/${id}/debate`, {
        by: ann,
        body: { comment, refinement: { [comment]: 1 } },
      });
    }
    const forms = ['text/markdown', 'application/json'].map(async (accept) => {
      const path = `/chambers/${id}/transcript?maxBytes=1048576`;
      return await (await service.app.request(path, { headers: { accept } }, {})).text();
    });
    const [markdown = '', json = ''] = await Promise.all(forms);
    expect(unseenIn(markdown)).toEqual([]);
    expect(textsOf(JSON.parse(json)).flatMap(unseenIn)).toEqual([]);
  });

  it.each([
    ['chambers', {}],
    ['read', { chamberId: 1, maxBytes: 65_536 }],
  ])('results and errors of the model’s tool %s contain no invisible characters', async (name, args) => {
    for (const status of [200, 400]) {
      const { result } = await callTool(name, args, status);
      expect(result.content[0]?.text.length).toBeGreaterThan(100);
      expect(unseenIn(result.content[0]?.text ?? '')).toEqual([]);
      expect(textsOf(result).flatMap(unseenIn)).toEqual([]);
    }
  });
});

const EVENT = {
  eventId: 1,
  type: 'chamber.debated',
  ts: '2030-01-01T00:00:00.000Z',
  prev: `0x${'0'.repeat(64)}`,
  chamberId: 1,
  request: null,
} as const satisfies Partial<ChamberEvent>;
const STATE = { ideas: [] } as unknown as ChamberState;

/** Calls a reading tool against a service that puts the text wherever it can. */
async function callTool(name: string, args: object, status: number) {
  const chamber = { chamberId: 1, phase: JOINED, name: JOINED, topic: JOINED, members: [], memberCount: 0 };
  const handler = createReadingHandler('test', {
    baseOf: () => '',
    fetch: async ({ url }) => {
      if (status !== 200) return Response.json({ error: 'FORUM_ERR_VALIDATION', detail: JOINED }, { status });
      if (url.includes('/transcript')) return new Response(`# ${JOINED}\n1. A1 ${JOINED}\n\nThe end so far: 1\n`);
      const ideas = [{ ideaId: JOINED, ticker: JOINED, name: JOINED }];
      return Response.json(
        url.includes('/chambers/1') ? { ...chamber, ideas, now: '' } : [{ ...chamber, [JOINED]: JOINED }],
      );
    },
  });
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await handler.fetch(new Request('http://localhost/mcp', init));
  const text = await response.text();
  return JSON.parse(text.replace(/^[\s\S]*?data: /, '')) as Called;
}

interface Called {
  readonly result: { readonly content: readonly { readonly text: string }[] };
}

/** Returns every text in a value, including names of members. */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsOf(member)]);
}
