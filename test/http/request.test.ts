// The body of a request: size, media type, and unambiguous text.
import { describe, expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { digestOf, Signer } from '../kit/signer.ts';
import { type Call, refusal, registrationOf, TestService, withAgent } from '../kit/test-service.ts';

const REGISTRATION = registrationOf(new Signer());

function register(call: Call, service = new TestService()) {
  return service.request('POST', '/register', call);
}

describe('the size of a body', () => {
  it('the size of a body may equal the limit but not exceed it', async () => {
    const text = JSON.stringify(REGISTRATION);
    expect(await register({ body: text.padEnd(65_536) })).toMatchObject({ status: 200 });
    expect(await register({ body: text.padEnd(65_537) })).toMatchObject(refusal(413, 'FORUM_ERR_TOO_LARGE', '65536'));
  });

  it('the size of a body is counted in bytes', async () => {
    const body = { ...REGISTRATION, personality: { style: 'é'.repeat(40_000) } };
    expect(await register({ body })).toMatchObject({ status: 413 });
  });
});

describe('the media type', () => {
  it.each(['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf-8"'])(
    'the media type may be %s',
    async (type) => {
      expect(await register({ body: REGISTRATION, headers: { 'content-type': type } })).toMatchObject({ status: 200 });
    },
  );

  it.each([
    'text/plain',
    'application/jsonx',
    'application/json; charset=latin1',
    'application/x-www-form-urlencoded',
    '',
  ])('the media type is rejected as %j', async (type) => {
    const answer = await register({ body: REGISTRATION, headers: { 'content-type': type } });
    expect(answer).toMatchObject(refusal(415, 'FORUM_ERR_MEDIA_TYPE', 'application/json'));
  });

  it('a body with a Content-Encoding is rejected', async () => {
    const answer = await register({ body: REGISTRATION, headers: { 'content-encoding': 'gzip' } });
    expect(answer).toMatchObject(refusal(415, 'FORUM_ERR_MEDIA_TYPE', 'Content-Encoding'));
  });

  it('the media type is ignored without a body', async () => {
    const { service, by } = await withAgent();
    const headers = { 'content-type': 'text/plain' };
    expect(await service.request('GET', '/me', { by, headers })).toMatchObject({ status: 200 });
  });
});

describe('the text of a body', () => {
  it.each([
    ['malformed JSON', '{"pubkeyHex":', 'not valid JSON'],
    ['a name twice', '{"patch":{},"patch":{}}', 'same member name twice'],
    ['33 levels', `${'['.repeat(33)}${']'.repeat(33)}`, 'deeper than 32'],
    ['a lone surrogate', '{"patch":{"style":"\\ud800"}}', 'surrogate'],
    ['an infinite number', '{"patch":1e999}', 'not finite'],
    ['a byte order mark', '\ufeff{}', 'not valid JSON'],
    ['no object', '"text"', 'must be an object'],
    ['nothing but white space', '  ', 'not valid JSON'],
  ])('the text of a body is rejected with %s', async (_what, body, detail) => {
    expect(await register({ body })).toMatchObject(refusal(400, 'FORUM_ERR_VALIDATION', detail));
  });

  it('the text of a body is rejected if it is not UTF-8', async () => {
    const service = new TestService();
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const headers = { 'content-type': 'application/json' };
    const response = await service.app.request('/register', { method: 'POST', headers, body }, {});
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('UTF-8')]);
  });

  it('the text of a body is kept in the evidence exactly as received, including white space and escapes', async () => {
    const { service, by } = await withAgent();
    const id = await openChamber(service, [by]);
    await enterPhase(service, id, 'DEBATE');
    const body = '{ "comment" : "h\\u006d",\n "refinement":{"__proto__":{"x":1},"constructor":[1.50]} }';
    await service.must('POST', `/chambers/${id}/debate`, { by, body });
    const line = (await service.lines(id)).at(-1) as string;
    expect(JSON.parse(line)).toMatchObject({
      type: 'chamber.debated',
      request: { method: 'POST', body, contentDigest: digestOf(body) },
    });
    const refinement = '"refinement":{"__proto__":{"x":1},"constructor":[1.5]}';
    expect(line).toContain(`"payload":{"accountEventId":1,"comment":"hm","ideaId":null,${refinement}}`);
  });

  it('the text of a body may be any well-formed text, which is stored as sent', async () => {
    const service = new TestService();
    const style = 'é e\u0301 \u0000 \u2028 😀 \ufffd <script>';
    const by = await service.agent({ personality: { style } });
    expect(await service.must('GET', '/me', { by })).toMatchObject({ personality: { style } });
  });
});
