// Fuzzes every endpoint: each request gets a response below 500 in the documented form. FUZZ_RUNS sets the number of requests; a failure prints the seed
// that repeats it.
import { Agent as HttpAgent, type IncomingHttpHeaders, request } from 'node:http';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ERROR_CODES } from '../../src/vocabulary/errors.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { call, newAgent, type Running, run } from '../kit/service.ts';
import type { Signer } from '../kit/signer.ts';

const { FUZZ_RUNS = '2000' } = process.env;
const RUNS = Number(FUZZ_RUNS);

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'] as const;
const CHAMBER_PATHS = [
  '',
  '/join',
  '/propose',
  '/debate',
  '/pass',
  '/allocate/commit',
  '/allocate/reveal',
  '/merkle-preview',
  '/ideas',
  '/events',
  '/stream',
  '/allocations',
  '/outcome',
  '/consistency',
  '/events/1/proof',
];

const id = fc.oneof(
  fc.constantFrom('1', '2', '99', '0', '-1', '1e3', '01', '9007199254740993', '%31', 'abc', '__proto__', '1.0', ''),
  fc.string({ maxLength: 12 }).map(encodeURIComponent),
);
const query = fc.dictionary(
  fc.constantFrom('after', 'limit', 'before', 'phase', 'log', 'from', 'to', 'chamberId', '__proto__', 'x'),
  fc.oneof(
    fc.constantFrom('0', '1', '2', '-1', '1e9', '', 'LOBBY', '99999999999999999999'),
    fc.string({ maxLength: 10 }),
  ),
  { maxKeys: 3 },
);
const path = fc.oneof(
  fc.constantFrom(
    '/',
    '/health',
    '/register',
    '/me',
    '/personality',
    '/chambers',
    '/ideas',
    '/openapi.json',
    '/nowhere',
  ),
  fc.tuple(id, fc.constantFrom(...CHAMBER_PATHS)).map(([chamber, rest]) => `/chambers/${chamber}${rest}`),
  id.map((ticker) => `/ideas/${ticker}`),
  id.map((event) => `/chambers/1/events/${event}/proof`),
);
const target = fc.tuple(path, query).map(([where, asked]) => {
  const parameters = new URLSearchParams(Object.entries(asked)).toString();
  return parameters === '' ? where : `${where}?${parameters}`;
});

const NAMES = ['name', 'ticker', 'description', 'comment', 'refinement', 'ideaId', 'allocations', 'salt', 'commitment'];
const MORE_NAMES = [
  'bps',
  'patch',
  'style',
  'loves',
  'lobbyDeadline',
  'turnSeconds',
  '__proto__',
  'constructor',
  'toJSON',
];
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ maxDepth: 4 }, tie('leaf'), fc.array(tie('tree'), { maxLength: 4 }), tie('object')),
  object: fc.dictionary(fc.oneof(fc.constantFrom(...NAMES, ...MORE_NAMES), fc.string()), tie('tree'), { maxKeys: 6 }),
  leaf: fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom(
      'idea-1',
      'TICK',
      '0x',
      `0x${'11'.repeat(32)}`,
      '2030-02-30T00:00:00Z',
      '\ud800',
      'x'.repeat(9_000),
    ),
    fc.double(),
    fc.constantFrom(0, -0, 1, 10_000, 10_001, 2 ** 53, 1e308, null, true),
  ),
}));
/** Valid and almost valid bodies of commands. */
const nearlyValid = fc.record(
  {
    name: fc.constantFrom('Idea', '', 'x'.repeat(121)),
    ticker: fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('TICK', 'tick')),
    description: fc.string({ unit: 'binary', maxLength: 9 }),
    comment: fc.string({ unit: 'grapheme', maxLength: 9 }),
    refinement: tree,
    ideaId: fc.constantFrom('idea-1', 'idea-0', '__proto__', 'constructor', null),
    allocations: fc.array(fc.record({ ideaId: fc.constantFrom('idea-1', '__proto__'), bps: fc.integer() })),
    salt: fc.constantFrom(`0x${'22'.repeat(16)}`, '0x22'),
    commitment: fc.constantFrom(`0x${'11'.repeat(32)}`, '0x11'),
    patch: fc.record({ style: fc.string(), loves: fc.array(fc.string()) }, { requiredKeys: [] }),
    turnSeconds: fc.integer(),
  },
  { requiredKeys: [] },
);
const one = (name: string, value: fc.Arbitrary<unknown>) => value.map((each) => ({ [name]: each }));
const validOrNearlyValid = fc.oneof(
  nearlyValid,
  one('comment', fc.string({ unit: 'grapheme', minLength: 1 })),
  one('patch', fc.record({ style: fc.string({ unit: 'grapheme' }) })),
  one('commitment', fc.constant(`0x${'11'.repeat(32)}`)),
  fc.string({ maxLength: 6 }).map((ticker) => ({ name: 'Idea', ticker, description: '' })),
  fc.constant({}),
);
const body = fc.oneof(
  { weight: 4, arbitrary: validOrNearlyValid.map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: tree.map((value) => JSON.stringify(value)) },
  fc.string(),
  fc.constantFrom(
    '{',
    '[[[[',
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1}}',
    '1e999',
    `${'['.repeat(40_000)}`,
    '{"\\ud800":1}',
    '\ufeff{}',
  ),
  fc.constant(undefined),
);
const headers = fc.dictionary(
  fc.constantFrom(
    'content-type',
    'content-digest',
    'signature-input',
    'signature',
    'accept',
    'last-event-id',
    'x-dev-did',
    'content-encoding',
  ),
  fc.oneof(
    fc.constantFrom('application/json', 'text/event-stream', 'gzip', 'sig1=()', 'sig1=::'),
    fc.string({ maxLength: 60 }).map(toHeader),
  ),
  { maxKeys: 2 },
);

function toHeader(text: string): string {
  return text.replace(/[^ -~]/g, '?').trim();
}

interface Made {
  readonly method: (typeof METHODS)[number];
  readonly target: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly isSigned: boolean;
}

const someHeaders = fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, headers);

const anything: fc.Arbitrary<Made> = fc.record({
  method: fc.constantFrom(...METHODS),
  target,
  body,
  headers: someHeaders,
  isSigned: fc.boolean(),
});

const chamber = fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 5 }).map(String) }, id);
const POST_PATHS = CHAMBER_PATHS.slice(1, 7);
const command: fc.Arbitrary<Made> = fc.record({
  method: fc.constant('POST' as const),
  target: fc.oneof(
    fc.tuple(chamber, fc.constantFrom(...POST_PATHS)).map(([each, rest]) => `/chambers/${each}${rest}`),
    fc.constantFrom('/register', '/chambers'),
  ),
  body,
  headers: someHeaders,
  isSigned: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.boolean()),
});
const read: fc.Arbitrary<Made> = anything.map((each) => ({ ...each, method: 'GET' as const }));
const change: fc.Arbitrary<Made> = command.map((each) => ({ ...each, method: 'PUT' as const, target: '/personality' }));
const made = fc.oneof(
  { weight: 6, arbitrary: command },
  { weight: 3, arbitrary: read },
  { weight: 1, arbitrary: change },
  { weight: 2, arbitrary: anything },
);

const HOURS_BY_PHASE = [
  [99, 99, 99, 99, 99],
  [1, 99, 99, 99, 99],
  [1, 1, 99, 99, 99],
  [1, 1, 1, 99, 99],
  [1, 1, 1, 1, 99],
];

/** A service with a chamber in each phase, 1 in LOBBY and so on. The agent has the turn in all of them. */
async function open(): Promise<{ running: Running; agent: Signer }> {
  const running = await run({ RATE_PER_ADDRESS_PER_SECOND: '1000000', RATE_PER_DID_PER_SECOND: '1000000' });
  const agent = await newAgent(running);
  for (const hours of HOURS_BY_PHASE) {
    const body = { name: 'Fuzzed', ...deadlinesFrom(running.clock.read(), hours) };
    const { chamberId } = await call(running, agent, ['POST', '/chambers', body]);
    await call(running, agent, ['POST', `/chambers/${chamberId}/join`]);
  }
  running.clock.advance(2 * HOUR);
  return { running, agent };
}

interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends the target unchanged, which fetch would not, and reads only the head of an endless response. */
function exchange(
  url: string,
  agent: HttpAgent,
  { method, target: path, headers: extra, body: text }: Made,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const outgoing = request({ agent, hostname, port, method, path, headers: extra }, async (incoming) => {
      const { statusCode: status = 0, headers: received } = incoming;
      if (received['content-type']?.startsWith('text/event-stream')) {
        incoming.destroy();
        return resolve({ status, headers: received, text: '' });
      }
      const chunks = await incoming.toArray();
      resolve({ status, headers: received, text: Buffer.concat(chunks).toString() });
    });
    outgoing.once('error', reject);
    outgoing.end(text);
  });
}

function signed({ running, agent }: { running: Running; agent: Signer }, each: Made): Made {
  const text = each.method === 'GET' || each.method === 'HEAD' ? undefined : each.body;
  if (!each.isSigned) return { ...each, body: text };
  const { url, clock } = running;
  const parts = { method: each.method, url: url + each.target, body: text, created: clock.seconds };
  const type: Record<string, string> = text === undefined ? {} : { 'content-type': 'application/json' };
  return { ...each, body: text, headers: { ...agent.sign(parts), ...type, ...each.headers } };
}

function expectDocumented({ status, headers: received, text }: Received, method: string): void {
  expect(status).toBeGreaterThanOrEqual(200);
  expect(status).toBeLessThan(500);
  expect(received['access-control-allow-origin']).toBe('*');
  if (status < 400 || method === 'HEAD') return;
  const { error, detail } = JSON.parse(text);
  expect(ERROR_CODES).toContain(error);
  expect(typeof detail).toBe('string');
}

it('every endpoint responds to every request as documented', { timeout: 120_000 }, async () => {
  const service = await open();
  const connections = new HttpAgent({ keepAlive: true });
  const statuses = new Set<number>();
  const property = fc.asyncProperty(made, async (each) => {
    const ready = signed(service, each);
    const received = await exchange(service.running.url, connections, ready);
    statuses.add(received.status);
    expectDocumented(received, ready.method);
  });
  await fc.assert(property, { numRuns: RUNS });
  connections.destroy();
  // A failure means that too few requests were valid.
  expect([...statuses]).toEqual(expect.arrayContaining([200, 204, 400, 401, 403, 404, 405, 415]));
  const health = await fetch(`${service.running.url}/health`);
  expect(health.status).toBe(200);
});
