// What the service accepts, however unusual the request, the auditor verifies: an honest log is never called broken.
import { get } from 'node:http';
import { expect, test } from 'vitest';
import { baseOf } from '../../src/audit/line/evidence.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { run } from '../kit/service.ts';
import { digestOf, type Signer } from '../kit/signer.ts';
import { PUBLIC_URL, TestService } from '../kit/test-service.ts';
import { audit, type Line, parse, rechained, signedLine, toText } from './forge.ts';

interface Oddity {
  readonly path?: string;
  readonly body?: string;
  /** Signature-Input without its label, from components and times. */
  readonly params?: (created: number, did: string) => string;
  readonly digest?: (body: string) => string;
}

const COMPONENTS = '("@method" "@target-uri" "content-digest")';
const usual = (created: number, did: string) => `${COMPONENTS};created=${created};keyid="${did}";alg="ed25519"`;

const ODDITIES: readonly (readonly [string, Oddity])[] = [
  ['nothing odd', {}],
  ['a query', { path: '/chambers/1/debate?x=/chambers/2/pass' }],
  ['an id that is %-encoded', { path: '/chambers/%31/debate' }],
  [
    'components in another order',
    { params: (created, did) => usual(created, did).replace(COMPONENTS, '("content-digest" "@target-uri" "@method")') },
  ],
  [
    'parameters in another order',
    { params: (created, did) => `${COMPONENTS};alg="ed25519";keyid="${did}";created=${created}` },
  ],
  [
    'a nonce with escapes, and an end',
    { params: (created, did) => `${usual(created, did)};nonce="\\"\\\\";expires=${created + 9}` },
  ],
  ['another digest beside', { digest: (body) => `sha-512=:${'A'.repeat(86)}==:, ${digestOf(body)}` }],
  [
    'a body with white space and members in any order',
    { body: ' {\n\t"refinement" : {"b":1,"a":[2.50, 1e2]}, "comment":"\\u00e9 \\/ \ud83c\udf31"}\r\n' },
  ],
  [
    'names that objects have already',
    { body: '{"comment":"x","refinement":{"__proto__":{"a":1},"constructor":null,"toString":[]}}' },
  ],
  ['text at the edge of Unicode', { body: JSON.stringify({ comment: '\u0000\u2028\u{10ffff}\ufeff' }) }],
];

async function debate(service: TestService, by: Signer, oddity: Oddity): Promise<number> {
  const { path = '/chambers/1/debate', body = '{"comment":"Hello"}', params = usual, digest = digestOf } = oddity;
  const input = params(service.clock.seconds, by.did);
  const contentDigest = digest(body);
  const values = { '@method': 'POST', '@target-uri': PUBLIC_URL + path, 'content-digest': contentDigest };
  const [, covered = ''] = /^\(([^)]*)\)/.exec(input) ?? [];
  const lines = covered.split(' ').map((name) => `${name}: ${values[JSON.parse(name) as keyof typeof values]}`);
  const signature = by.signText([...lines, `"@signature-params": ${input}`].join('\n'));
  const headers = {
    'content-type': 'application/json',
    'content-digest': contentDigest,
    'signature-input': `sig1=${input}`,
    signature: `sig1=:${signature}:`,
  };
  return (await service.send({ method: 'POST', path, body, headers })).status;
}

test.each(ODDITIES)('%s', async (_what, oddity) => {
  const service = new TestService();
  const ann = await service.agent();
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'DEBATE');
  expect(await debate(service, ann, oddity)).toBe(200);
  const { broken, check } = await audit(toText(await service.lines(1)));
  expect(broken).toEqual([]);
  for (const name of ['form', 'digest', 'signature', 'target', 'rules', 'payload', 'age'] as const) {
    expect(check(name).verdict, name).toBe('verified');
  }
});

const HOSTS = [
  ...['forum.test', 'LOCALHOST:8787', '127.1', '0x7f.1', '[::1]:8787', '_', 'a-.b', 'forum.test:80', 'xn--nxasmq6b'],
  ...[
    '256.256.256.256',
    '1.2.3.4.5',
    'foo.256',
    '999999999999',
    'xn--',
    'a..b',
    '[::1',
    'forum.test:99999',
    '-',
    'x:y',
  ],
];

test('every Host that a service without PUBLIC_URL accepts is an address to the auditor', async () => {
  const { url } = await run();
  const { hostname, port } = new URL(url);
  const statusOf = (host: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { host };
      const request = get({ hostname, port, path: '/ready', headers, agent: false }, (response) => {
        resolve(response.resume().statusCode ?? 0);
      });
      request.on('error', reject);
    });
  const accepted: string[] = [];
  for (const host of HOSTS) if ((await statusOf(host)) === 200) accepted.push(host);
  expect(accepted).toContain('LOCALHOST:8787');
  expect(accepted).not.toContain('256.256.256.256');
  const path = '/chambers/1/pass';
  expect(accepted.filter((host) => baseOf(`http://${host}${path}`, path) === undefined)).toEqual([]);
});

test.each(['.', '..'])('the ticker %s, which earlier releases accepted', async (ticker) => {
  const service = new TestService();
  const ann = await service.agent();
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'PROPOSAL');
  await service.must('POST', '/chambers/1/propose', { by: ann, body: { name: 'N', ticker: 'T' } });
  const lines = parse(await service.lines(1));
  const { payload: proposed } = lines.at(-1) as Line;
  const payload = { ...(proposed as Line), ticker };
  const { by, type, path } = { by: ann, type: 'chamber.proposed', path: 'propose' };
  const at = service.clock.read();
  const earlier = signedLine({ by, type, path, at, body: { name: 'N', ticker }, payload });
  expect((await audit(toText(rechained([...lines.slice(0, -1), earlier])))).broken).toEqual([]);
});

test('a log of development mode is judged by the rules, and reported as unsigned', async () => {
  const service = new TestService({ settings: { DEV_ALLOW_UNSIGNED: 'true' } });
  const ann = await service.agent();
  const as = { headers: { 'x-dev-did': ann.did } };
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'PROPOSAL');
  await service.must('POST', '/chambers/1/propose', { ...as, body: { name: 'N', ticker: 'T' } });
  await service.must('POST', '/chambers/1/pass', as);
  const lines = toText(await service.lines(1));
  const { broken, named, check } = await audit(lines);
  expect(broken).toEqual(['signature']);
  expect([...named]).toEqual([3, 4]);
  expect(check('rules').counts).toEqual({ verified: 4, broken: 0, undecided: 0, notEvaluated: 0 });
  const allowed = await audit(lines, { allowUnsigned: true });
  expect([allowed.broken, allowed.check('signature').note]).toEqual([[], 'nobody signed 2 of the moves']);
});
