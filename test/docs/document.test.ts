// The OpenAPI document and the event schemas: valid for other tools, and equivalent to the validation.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { ERRORS } from '../../src/docs/errors.ts';
import { eventDocument } from '../../src/docs/events.ts';
import { openApiDocument } from '../../src/docs/openapi.ts';
import { httpRoutes } from '../../src/http/app.ts';
import { changePersonality } from '../../src/moves/change-personality.ts';
import { type Move, parseBody } from '../../src/moves/move.ts';
import { register } from '../../src/moves/register.ts';
import { moves } from '../../src/moves/registry.ts';
import { SAMPLE_PUBKEY } from '../../src/moves/samples.ts';
import { streamEndpoints } from '../../src/stream/endpoints.ts';
import type { JsonValue } from '../../src/vocabulary/values.ts';
import { TestService } from '../kit/test-service.ts';
import { newAjv } from './described.ts';
import { LIMITS } from './limits.ts';

const SLICES = { register, changePersonality, ...moves };
const endpoints = [...httpRoutes, ...streamEndpoints];
const document = openApiDocument({ version: '1.2.3', baseUrls: ['https://a.example.org'], limits: LIMITS, endpoints });
const ajv = newAjv();
ajv.addSchema({ $id: 'openapi', components: document.components });

describe('`servers` has absolute URLs for generators', () => {
  const serversFor = async (host: string, PUBLIC_URL = '') => {
    const { app } = new TestService({ settings: { PUBLIC_URL } });
    const response = await app.request('/openapi.json', { headers: { host } }, {});
    return ((await response.json()) as typeof document).servers.map(({ url }) => url);
  };

  test('`servers` has the absolute URL that the reader uses', async () => {
    expect(await serversFor('127.0.0.1:8787')).toEqual(['http://127.0.0.1:8787']);
    expect(await serversFor('forum.test')).toEqual(['http://forum.test']);
  });

  test('`servers` has all public URLs, that of the reader first', async () => {
    const [a, b] = ['https://a.example.org', 'https://b.example.org/api'];
    expect(await serversFor('c.example.org', `${a},${b}`)).toEqual([a, b]);
    expect(await serversFor('b.example.org', `${a},${b}`)).toEqual([b, a]);
  });
});

test('a constant is an enum of one value, because generators do not accept const as a discriminator', () => {
  const documents = { openApi: document, events: eventDocument() };
  for (const [name, each] of Object.entries(documents)) expect(JSON.stringify(each), name).not.toContain('"const":');
  const { ChamberJoinedEvent, FORUM_ERR_PHASE, JoinResponse } = document.components.schemas;
  expect(ChamberJoinedEvent?.properties?.['type']).toEqual({ type: 'string', enum: ['chamber.joined'] });
  expect(FORUM_ERR_PHASE?.properties?.['error']).toEqual({ type: 'string', enum: ['FORUM_ERR_PHASE'] });
  expect(JoinResponse?.properties?.['ok']).toEqual({ type: 'boolean', enum: [true] });
});

test('the description of a stream names the header that a generated client must send', () => {
  for (const path of ['/chambers/{id}/stream', '/events'])
    expect(document.paths[path]?.get?.description).toContain(
      'the header `Accept: text/event-stream`, which a generated client must be told to send',
    );
});

test('no pattern escapes a slash, because generators would escape it again, or needs a flag, because they drop flags', () => {
  const patterns = (value: unknown): readonly string[] =>
    typeof value !== 'object' || value === null
      ? []
      : Object.entries(value).flatMap(([name, each]) =>
          name === 'pattern' && typeof each === 'string' ? [each] : patterns(each),
        );
  const all = [...patterns(document), ...patterns(eventDocument())];
  expect(all.length).toBeGreaterThan(20);
  expect(all.filter((pattern) => /(?:^|[^\\])(?:\\\\)*\\\//.test(pattern))).toEqual([]);
  expect(all.filter((pattern) => /\\[pP]\{/.test(pattern))).toEqual([]);
});

test('every operation has a description, and the document has a contact', () => {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  expect(operations.filter(({ description }) => !description.endsWith('.'))).toEqual([]);
  expect(document.info.contact.url).toBe('https://a.example.org');
});

/** Routes without a description: preflights, the page's files, the documents themselves, and MCP. */
const NOT_DESCRIBED: readonly string[] = [
  '/*',
  '/assets/:name',
  '/openapi.json',
  '/schemas/events.json',
  '/docs',
  '/agent-guide',
  '/llms.txt',
  '/SKILL.md',
  '/server.json',
  '/mcp',
];
/** The middleware that limits reads. */
const CHECKS: readonly string[] = ['/chambers/*', '/ideas/*', '/agents/*', '/log/*'];

test('the document describes every route', () => {
  const described = Object.keys(document.paths).map((path) => path.replace(/\{(\w+)\}/g, ':$1'));
  const routes = new TestService().app.routes.map(({ path }) => path.replace('{.+}', ''));
  expect(routes).toEqual(expect.arrayContaining(Object.values(SLICES).map(({ path }) => path)));
  expect(routes.filter((route) => ![...NOT_DESCRIBED, ...CHECKS, ...described].includes(route))).toEqual([]);
});

test('the example of every error has the error’s code and fits the schema', () => {
  expect(ERRORS.filter(({ code, example }) => !ajv.validate(`openapi#/components/schemas/${code}`, example))).toEqual(
    [],
  );
  expect(ERRORS.map(({ example }) => example.error)).toEqual(ERRORS.map(({ code }) => code));
});

test('the example of every event type fits only the schema of its type', () => {
  const { $defs } = eventDocument();
  const events = newAjv().addSchema({ ...eventDocument(), $id: 'events' });
  for (const [type, { examples }] of Object.entries($defs)) {
    const fitting = Object.keys($defs).filter((other) => events.validate(`events#/$defs/${other}`, examples[0]));
    expect(fitting).toEqual([type]);
  }
});

describe('the schema of an event is as strict as the rules', () => {
  const events = newAjv().addSchema({ ...eventDocument(), $id: 'events' });
  const changed = (type: string, part: 'payload' | 'request', members: object) => {
    const example = eventDocument().$defs[type]?.examples[0] as Record<'payload' | 'request', object>;
    return { ...example, [part]: { ...example[part], ...members } };
  };

  test.each<[type: string, part: 'payload' | 'request', members: object]>([
    ['chamber.created', 'payload', { name: '' }],
    ['chamber.created', 'payload', { turnSeconds: 31_536_001 }],
    ['chamber.created', 'payload', { maxMembers: 1 }],
    ['chamber.created', 'payload', { maxMembers: 257 }],
    ['chamber.proposed', 'payload', { name: '' }],
    ['chamber.debated', 'payload', { refinement: 'x' }],
    ['allocation.revealed', 'payload', { salt: '0x' }],
    ['allocation.revealed', 'payload', { salt: `0x${'5a'.repeat(15)}5` }],
    ['allocation.revealed', 'payload', { salt: `0x${'5a'.repeat(65)}` }],
    ['relay.commit_submitted', 'payload', { rawTransaction: '0x' }],
    ['relay.commit_submitted', 'payload', { rawTransaction: '0x0' }],
    ['chamber.joined', 'request', { method: 'GET' }],
    ['chamber.joined', 'request', { targetUri: '/chambers/1/join' }],
    ['chamber.joined', 'request', { contentDigest: 'sha-256=:AAAA:' }],
    ['chamber.joined', 'request', { signatureInput: 'sig2=("@method")' }],
    ['chamber.joined', 'request', { signature: 'sig1=:AAAA:' }],
  ])('a %s event whose %s has %j does not fit its schema', (type, part, members) => {
    expect(events.validate(`events#/$defs/${type}`, changed(type, part, {}))).toBe(true);
    expect(events.validate(`events#/$defs/${type}`, changed(type, part, members))).toBe(false);
  });
});

test('the request of an event may have other signatures', () => {
  const events = newAjv().addSchema({ ...eventDocument(), $id: 'events' });
  const example = eventDocument().$defs['chamber.joined']?.examples[0] as { readonly request: Record<string, string> };
  const { signatureInput, signature } = example.request;
  const fits = (members: object) =>
    events.validate('events#/$defs/chamber.joined', { ...example, request: { ...example.request, ...members } });
  const [input, bytes] = ['proxy=("@authority");tag="a, b"', 'proxy=:AAAA:'];
  for (const request of [
    { signatureInput: `${signatureInput}, ${input}`, signature: `${signature}, ${bytes}` },
    { signatureInput: `${input},${signatureInput}`, signature: `${bytes} ,\t${signature}` },
  ]) {
    expect(fits(request)).toBe(true);
  }
  expect(fits({ signatureInput: input, signature: bytes })).toBe(false);
});

test('an event fits the union of its log, which is discriminated by type', () => {
  for (const [type, { examples }] of Object.entries(eventDocument().$defs)) {
    const { ChamberEvent, AccountEvent } = document.components.schemas;
    const isOfAccount = type.startsWith('agent.');
    const [own, other] = isOfAccount ? [AccountEvent, ChamberEvent] : [ChamberEvent, AccountEvent];
    expect(ajv.validate('openapi#/components/schemas/ChamberEvent', examples[0])).toBe(!isOfAccount);
    expect(ajv.validate('openapi#/components/schemas/AccountEvent', examples[0])).toBe(isOfAccount);
    const named = own?.discriminator?.mapping?.[type]?.split('/').at(-1) ?? '';
    expect(document.components.schemas[named]?.properties?.['type']?.enum).toEqual([type]);
    expect(Object.keys(other?.discriminator?.mapping ?? {})).not.toContain(type);
  }
});

test('no member of a body has a default: generators would require it', () => {
  const bodies = Object.entries(document.components.schemas).filter(([name]) => name.endsWith('Body'));
  expect(bodies.length).toBeGreaterThan(5);
  expect(bodies.filter(([, schema]) => JSON.stringify(schema).includes('"default":'))).toEqual([]);
});

describe('the code samples', () => {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const samples = operations.flatMap(({ 'x-codeSamples': each }) => each);
  const sourcesIn = (lang: string) => samples.filter((sample) => sample.lang === lang).map(({ source }) => source);
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;

  test('the code samples exist for every operation', () => {
    const langs = operations.map(({ 'x-codeSamples': each }) => each.map(({ lang }) => lang).join(' '));
    expect(new Set(langs)).toEqual(new Set(['Shell JavaScript Python', 'Shell']));
    expect(langs.filter((lang) => lang === 'Shell')).toHaveLength(1);
  });

  test('the code samples parse a body in its format without an Accept header', () => {
    const sourcesOf = (path: string) =>
      Object.fromEntries(document.paths[path]?.get?.['x-codeSamples'].map(({ lang, source }) => [lang, source]) ?? []);
    const text = { JavaScript: expect.stringContaining('.text()'), Python: expect.not.stringContaining('json') };
    const json = { JavaScript: expect.stringContaining('.json()'), Python: expect.stringContaining('json.load') };
    expect(sourcesOf('/chambers/{id}/transcript')).toMatchObject(text);
    expect(sourcesOf('/chambers/{id}')).toMatchObject(json);
  });

  test('the code samples are valid JavaScript that calls existing methods of the client', () => {
    for (const source of sourcesIn('JavaScript')) {
      const [, call = ''] = /(?:agent|forum)\.(\w+)\(/.exec(source) ?? [];
      const owner = source.includes('agent.') ? Agent : ForumClient;
      if (source.startsWith('import'))
        expect(Object.keys(Object.getOwnPropertyDescriptors(owner.prototype))).toContain(call);
      expect(() => new AsyncFunction(source.replace(/^import .*$/m, ''))).not.toThrow();
    }
  });

  test('the code samples are valid Python that calls existing methods of the client', () => {
    const client = readFileSync('src/client/python/chambers.py', 'utf8');
    for (const source of sourcesIn('Python').filter((text) => text.includes('from chambers'))) {
      const [, call] = /(?:agent|reader)\.(\w+)\(/.exec(source) ?? [];
      expect(client).toContain(`    def ${call}(self`);
    }
  });

  test('the code samples are valid shell commands', () => {
    const checked = spawnSync('bash', ['-n'], { input: sourcesIn('Shell').join('\n'), encoding: 'utf8' });
    expect({ status: checked.status, stderr: checked.stderr }).toEqual({ status: 0, stderr: '' });
  });
});

const DEADLINES = {
  lobbyDeadline: '2030-01-01T00:00:00Z',
  proposalDeadline: '2030-01-01T00:00:00.1Z',
  debateDeadline: '2030-01-01T00:00:00Z',
  allocateCommitDeadline: '2030-01-01T00:00:00Z',
  allocateRevealDeadline: '2030-01-01T00:00:00Z',
};
const AGENT = { pubkeyHex: SAMPLE_PUBKEY, walletAddress: `0x${'11'.repeat(20)}`, operatorEmail: 'a@b.org' };

type Operation = keyof typeof SLICES;

const BODIES: readonly (readonly [Operation, JsonValue])[] = [
  ['register', { ...AGENT, personality: {} }],
  ['register', { ...AGENT, personality: { loves: ['x'], style: '' } }],
  ['register', { ...AGENT, personality: { likes: [] } }],
  ['register', { ...AGENT, personality: { loves: Array(64).fill('x'.repeat(256)), style: 'x'.repeat(2_048) } }],
  ['register', { ...AGENT, personality: { loves: Array(65).fill('x') } }],
  ['register', { ...AGENT, personality: { hates: [''] } }],
  ['register', { ...AGENT, personality: { expertise: ['x'.repeat(257)] } }],
  ['register', { ...AGENT, personality: { style: 'x'.repeat(2_049) } }],
  ['register', { ...AGENT, personality: { loves: 'x' } }],
  ['register', AGENT],
  ['register', { ...AGENT, personality: {}, pubkeyHex: '0x00' }],
  ['register', { ...AGENT, personality: {}, walletAddress: '0x11' }],
  ['register', { ...AGENT, personality: {}, operatorEmail: 'a' }],
  ['register', { ...AGENT, personality: {}, operatorEmail: "o'neil=%&@my--host.example.xn--p1ai" }],
  ['register', { ...AGENT, personality: {}, operatorEmail: 'a@localhost' }],
  ['register', { ...AGENT, personality: {}, operatorEmail: 'a..b@example.org' }],
  ['register', { ...AGENT, personality: {}, operatorEmail: 'a@127.0.0.1' }],
  ['changePersonality', { patch: {} }],
  ['changePersonality', {}],
  ['createChamber', { name: 'n', ...DEADLINES }],
  ['createChamber', { name: 'n', ...DEADLINES, minBackersForGraduation: 2, turnSeconds: 60 }],
  ['createChamber', { name: 'n', ...DEADLINES, minBackersForGraduation: 0 }],
  ['createChamber', { name: 'n', ...DEADLINES, turnSeconds: 1.5 }],
  ['createChamber', { name: 'n', ...DEADLINES, lobbyDeadline: '2030-01-01T00:00:00+01:00' }],
  ['createChamber', { name: 'n', ...DEADLINES, lobbyDeadline: '2030-02-30T00:00:00Z' }],
  ['createChamber', { name: '', ...DEADLINES }],
  ['createChamber', { name: 'n'.repeat(121), ...DEADLINES }],
  ['join', {}],
  ['join', { chamberId: 1 }],
  ['propose', { name: 'n', ticker: 'a_B.-9' }],
  ['propose', { name: 'n', ticker: 'a b' }],
  ['propose', { name: 'n', ticker: 'a'.repeat(33) }],
  ['propose', { name: 'n', ticker: 'a', description: 'd'.repeat(8193) }],
  ['debate', { comment: 'c' }],
  ['debate', { comment: 'c', ideaId: null, refinement: { a: { b: [1, 'x', null] } } }],
  ['debate', { comment: 'c', refinement: [] }],
  ['debate', { comment: '' }],
  ['pass', {}],
  ['pass', []],
  ['commit', { commitment: `0x${'Aa'.repeat(32)}` }],
  ['commit', { commitment: 'aa'.repeat(32) }],
  ['reveal', { allocations: [{ ideaId: 'idea-1', bps: 10_000 }], salt: `0x${'ab'.repeat(16)}` }],
  ['reveal', { allocations: [], salt: `0x${'ab'.repeat(64)}` }],
  ['reveal', { allocations: [{ ideaId: 'idea-1', bps: 10_001 }], salt: `0x${'ab'.repeat(16)}` }],
  ['reveal', { allocations: [{ ideaId: 'idea-1' }], salt: `0x${'ab'.repeat(16)}` }],
  ['reveal', { allocations: [], salt: `0x${'ab'.repeat(15)}` }],
  ['reveal', { allocations: [], salt: '0xabc' }],
];

describe('a body fits its published schema exactly when it is valid', () => {
  test.each(BODIES)('the body of %s fits its published schema exactly if it is valid: %j', (operation, body) => {
    const name = `${operation.charAt(0).toUpperCase()}${operation.slice(1)}Body`;
    expect(ajv.validate(`openapi#/components/schemas/${name}`, body)).toBe(isValid(operation, body));
  });
});

function isValid(operation: Operation, body: JsonValue): boolean {
  try {
    parseBody(SLICES[operation] as Move, { json: body });
    return true;
  } catch {
    return false;
  }
}
