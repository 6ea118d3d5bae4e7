// The auditor verifies every request form that the service accepts, and never reports an honest log as broken.
import { get } from 'node:http';
import { expect, test } from 'vitest';
import { baseOf } from '../../src/audit/line/evidence.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { run } from '../kit/service.ts';
import type { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, TestService } from '../kit/test-service.ts';
import { audit, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { ACCEPTED, EARLIER, inForm, REFUSED, type RequestForm } from './request-forms.ts';

async function debate(service: TestService, by: Signer, form: RequestForm): Promise<number> {
  const { path = '/chambers/1/debate', body = '{"comment":"Hello"}' } = form;
  const request = inForm(form, by, { url: PUBLIC_URL + path, body, created: service.clock.seconds });
  const headers = {
    'content-type': 'application/json',
    'content-digest': request.contentDigest,
    'signature-input': request.signatureInput,
    signature: request.signature,
  };
  return (await service.send({ method: 'POST', path, body, headers })).status;
}

async function inDebate(): Promise<{ readonly service: TestService; readonly ann: Signer }> {
  const service = new TestService();
  const ann = await service.agent();
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'DEBATE');
  return { service, ann };
}

test.each(ACCEPTED.filter(([what]) => !EARLIER.has(what)))('service and auditor accept %s', async (_what, form) => {
  const { service, ann } = await inDebate();
  expect(await debate(service, ann, form)).toBe(200);
  const { broken, check } = await audit(toText(await service.lines(1)));
  expect(broken).toEqual([]);
  for (const name of ['form', 'digest', 'signature', 'target', 'rules', 'payload', 'age'] as const) {
    expect(check(name).verdict, name).toBe('verified');
  }
});

test.each(ACCEPTED.filter(([what]) => EARLIER.has(what)))(
  'the auditor accepts %s in a line of an earlier release',
  async (_what, form) => {
    const { service, ann } = await inDebate();
    expect(await debate(service, ann, form)).toBe(400);
    expect(await debate(service, ann, {})).toBe(200);
    const lines = parse(await service.lines(1));
    const last = lines.at(-1) as Line;
    const parts = { url: PUBLIC_URL + (form.path ?? '/chambers/1/debate'), body: '{"comment":"Hello"}' };
    const signed = inForm(form, ann, { ...parts, created: service.clock.seconds });
    const request = { method: 'POST', targetUri: parts.url, ...signed };
    expect((await audit(toText(rechained([...lines.slice(0, -1), { ...last, request }])))).broken).toEqual([]);
  },
);

test('the service rejects every form that the auditor rejects', async () => {
  const { service, ann } = await inDebate();
  for (const [what, form] of REFUSED) expect([400, 401], what).toContain(await debate(service, ann, form));
  expect(await debate(service, ann, {})).toBe(200);
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

test('the auditor accepts every Host header that a service without PUBLIC_URL accepts', async () => {
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

test.each([
  ['.', 'N'],
  ['..', 'N'],
  ['idea-7', 'N'],
  ['A1', 'N'],
  ['SYSTEM', 'N'],
  ['T2', 'two\nlines'],
])('the auditor accepts the ticker %s for an idea named %j, as earlier releases did', async (ticker, name) => {
  const service = new TestService();
  const ann = await service.agent();
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'PROPOSAL');
  await service.must('POST', '/chambers/1/propose', { by: ann, body: { name: 'N', ticker: 'T' } });
  const lines = parse(await service.lines(1));
  const { payload: proposed } = lines.at(-1) as Line;
  const payload = { ...(proposed as Line), ticker, name };
  const { by, type, path } = { by: ann, type: 'chamber.proposed', path: 'propose' };
  const at = service.clock.read();
  const earlier = signedLine({ by, type, path, at, body: { name, ticker }, payload });
  expect((await audit(toText(rechained([...lines.slice(0, -1), earlier])))).broken).toEqual([]);
});

test('a log of development mode is checked against the rules and reported as unsigned', async () => {
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
  expect([allowed.broken, allowed.check('signature').note]).toEqual([[], 'no signature covers 2 of the moves']);
});
