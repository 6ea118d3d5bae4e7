// Signed requests (specification, Authentication): one row for each kind of invalid signature.
import { createHash } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import { describe, expect, it } from 'vitest';
import { openChamber } from '../kit/chambers.ts';
import { digestOf, Signer } from '../kit/signer.ts';
import {
  type Answer,
  PUBLIC_URL,
  refusal,
  registrationOf,
  TestService,
  withAgent,
  withTwoAgents,
} from '../kit/test-service.ts';

interface Parts {
  readonly method: string;
  readonly url: string;
  readonly digest: string;
  readonly components: string;
  readonly params: string;
  readonly label: string;
}

/** GET /me with a changed signature; the request itself stays the same. */
async function me(change: (parts: Parts & { did: string; created: number }) => Partial<Parts>): Promise<Answer> {
  const { service, by } = await withAgent();
  const created = service.clock.seconds;
  const usual = {
    method: 'GET',
    url: `${PUBLIC_URL}/me`,
    digest: digestOf(''),
    components: '"@method" "@target-uri" "content-digest"',
    params: `;created=${created};keyid="${by.did}";alg="ed25519"`,
    label: 'sig1',
  };
  const { method, url, digest, components, params, label } = {
    ...usual,
    ...change({ ...usual, did: by.did, created }),
  };
  const values: Record<string, string> = {
    '@method': method,
    '@target-uri': url,
    'content-digest': digest,
    '@authority': 'forum.test',
  };
  const lines = components.split(' ').map((name) => `${name}: ${values[name.replaceAll('"', '')] ?? ''}\n`);
  const signature = by.signText(`${lines.join('')}"@signature-params": (${components})${params}`);
  const headers = {
    'content-digest': digest,
    'signature-input': `${label}=(${components})${params}`,
    signature: `${label}=:${signature}:`,
  };
  return service.request('GET', '/me', { headers });
}

describe('a signed request', () => {
  it.each<[string, Parameters<typeof me>[0]]>([
    ['in the form of the specification', () => ({})],
    ['with nonce and expires', ({ params, created }) => ({ params: `${params};nonce="n";expires=${created + 5}` })],
    ['with the components in another order', () => ({ components: '"content-digest" "@target-uri" "@method"' })],
    [
      'with the parameters in another order',
      ({ did, created }) => ({ params: `;alg="ed25519";keyid="${did}";created=${created}` }),
    ],
    ['with another digest next to sha-256', ({ digest }) => ({ digest: `${digest}, sha-512=:AAAA:` })],
    ['300 s old', ({ params, created }) => ({ params: params.replace(`${created}`, `${created - 300}`) })],
    ['60 s ahead', ({ params, created }) => ({ params: params.replace(`${created}`, `${created + 60}`) })],
  ])('a signed request is accepted %s', async (_how, change) => {
    expect(await me(change)).toMatchObject({ status: 200, body: { did: expect.stringMatching('^did:key:z6Mk') } });
  });

  it.each<[string, string, Parameters<typeof me>[0]]>([
    ['another label', 'form', () => ({ label: 'sig2' })],
    ['a missing component', 'form', () => ({ components: '"@method" "@target-uri"' })],
    ['an additional component', 'form', ({ components }) => ({ components: `${components} "@authority"` })],
    ['a repeated component', 'form', ({ components }) => ({ components: `${components} "@method"` })],
    ['no created', 'form', ({ params, created }) => ({ params: params.replace(`;created=${created}`, '') })],
    ['no keyid', 'form', ({ created }) => ({ params: `;created=${created};alg="ed25519"` })],
    ['no alg', 'form', ({ params }) => ({ params: params.replace(';alg="ed25519"', '') })],
    ['another alg', 'form', ({ params }) => ({ params: params.replace('ed25519', 'rsa-v1_5-sha256') })],
    ['a repeated parameter', 'form', ({ params }) => ({ params: `${params};alg="ed25519"` })],
    ['an unknown parameter', 'form', ({ params }) => ({ params: `${params};tag="x"` })],
    ['a quoted created', 'form', ({ params, created }) => ({ params: params.replace(`=${created}`, `="${created}"`) })],
    ['a negative created', 'form', ({ params, created }) => ({ params: params.replace(`${created}`, '-1') })],
    ['no sha-256 digest', 'digest', () => ({ digest: 'sha-512=:AAAA:' })],
    ['the digest of another body', 'digest', () => ({ digest: digestOf('{}') })],
    ['sha-256 twice', 'digest', ({ digest }) => ({ digest: `${digest}, ${digest}` })],
    [
      'a keyid that is not a did:key',
      'key',
      ({ params, did }) => ({ params: params.replace(did, 'did:web:forum.test') }),
    ],
    ['a keyid with a fragment', 'key', ({ params, did }) => ({ params: params.replace(did, `${did}#key`) })],
    [
      'a key of small order, which is never registered',
      'registration',
      ({ params, did }) => ({ params: params.replace(did, SMALL_ORDER) }),
    ],
    ['the signature of another method', 'verification', () => ({ method: 'PUT' })],
    ['the signature of another path', 'verification', () => ({ url: `${PUBLIC_URL}/me?` })],
    ['the signature of another service', 'verification', () => ({ url: 'https://elsewhere.test/me' })],
    [
      'an unknown key with any signature',
      'registration',
      ({ params, did }) => ({ params: params.replace(did, new Signer().did) }),
    ],
    ['an age of 301 s', 'age', ({ params, created }) => ({ params: params.replace(`${created}`, `${created - 301}`) })],
    [
      'a created 61 s ahead',
      'age',
      ({ params, created }) => ({ params: params.replace(`${created}`, `${created + 61}`) }),
    ],
    ['an expiry in the past', 'age', ({ params, created }) => ({ params: `${params};expires=${created}` })],
  ])('a signed request is rejected with %s, by the step %s', async (_fault, step, change) => {
    const detail = expect.stringMatching(`^${step}: .*service time 2030-01-01T00:00:00.000Z`);
    expect(await me(change)).toMatchObject({
      status: 401,
      body: { error: 'FORUM_ERR_SIGNATURE', detail, serviceTime: '2030-01-01T00:00:00.000Z' },
    });
  });

  it.each<[string, RegExp, Parameters<typeof me>[0]]>([
    ['EdDSA', /alg="ed25519", not "EdDSA"/, ({ params }) => ({ params: params.replace('ed25519', 'EdDSA') })],
    ['Ed25519', /alg="ed25519", not "Ed25519"/, ({ params }) => ({ params: params.replace('ed25519', 'Ed25519') })],
    [
      'a did:key with the fragment of its only key',
      /the did:key alone: leave out # and what follows it/,
      ({ params, did }) => ({ params: params.replace(did, `${did}#${did.slice('did:key:'.length)}`) }),
    ],
  ])(
    'the error for a signature names the difference from the form of other libraries: %s',
    async (_, detail, change) => {
      expect((await me(change)).body).toMatchObject({ detail: expect.stringMatching(detail) });
    },
  );

  it.each([
    ['GET', '/me', undefined],
    ['POST', '/chambers', {}],
  ])('a signature is missing if only a proxy has signed: %s %s', async (method, path, body) => {
    const service = new TestService();
    const headers = { 'signature-input': 'proxy=("@authority")', signature: 'proxy=:AAAA:' };
    const { status, body: answer } = await service.request(method, path, { headers, body });
    expect([status, answer.step, answer.detail]).toEqual([
      401,
      'form',
      expect.stringMatching(
        /^form: Signature-Input and Signature have no signature labelled sig1; their labels are proxy \(/,
      ),
    ]);
  });

  it('a signature is not required for a registration that only a proxy has signed', async () => {
    const headers = { 'signature-input': 'proxy=("@authority")', signature: 'proxy=:AAAA:' };
    const service = new TestService();
    const body = registrationOf(new Signer());
    expect(await service.request('POST', '/register', { headers, body })).toMatchObject({ status: 200 });
    const torn = { ...headers, signature: 'other=:AAAA:' };
    expect(await service.request('POST', '/register', { headers: torn, body })).toMatchObject({ status: 401 });
  });

  it.each(['content-digest', 'signature-input', 'signature'])(
    'a signed request is rejected without the header %s',
    async (name) => {
      const service = new TestService();
      const { [name]: _left, ...headers } = service.prepare('GET', '/me', { by: await service.agent() }).headers;
      const answer = await service.request('GET', '/me', { headers });
      expect(answer).toMatchObject(refusal(401, 'FORUM_ERR_SIGNATURE'));
      expect(answer.body.detail.toLowerCase()).toMatch(new RegExp(`: the ${name} header is missing \\(`));
    },
  );

  it('a signed request that lacks any of the three headers is rejected', async () => {
    const { body } = await new TestService().request('GET', '/me');
    expect(body.detail).toMatch(/^form: the Signature-Input and Signature headers are missing \(/);
  });

  it.each([
    ['sig', 'sig1', 'Signature-Input must start with the label sig1', 'its labels are sig'],
    ['sig1', 'sig', 'Signature must contain sig1=:<base64>:', 'its labels are sig'],
    ['sig', 'sig', 'Signature-Input and Signature have no signature labelled sig1', 'their labels are sig'],
  ])(
    'the error for a missing sig1 names the header and its labels: %s, %s',
    async (inInput, inSignature, fault, labels) => {
      const service = new TestService();
      const { headers } = service.prepare('GET', '/me', { by: await service.agent() });
      const sent = {
        ...headers,
        'signature-input': headers['signature-input']?.replace('sig1', inInput) ?? '',
        signature: headers['signature']?.replace('sig1', inSignature) ?? '',
      };
      const { status, body } = await service.request('GET', '/me', { headers: sent });
      expect([status, body.step]).toEqual([401, 'form']);
      expect(body.detail).toContain(fault);
      expect(body.detail).toContain(`${labels} (service time`);
    },
  );

  it('the error for a missing sig1 names all other labels, however long they are', async () => {
    const labels = ['a', 'b', 'c'].map((name) => name.repeat(200));
    const headers = {
      'signature-input': labels.map((label) => `${label}=()`).join(', '),
      signature: labels.map((label) => `${label}=:AAAA:`).join(', '),
    };
    const { body } = await new TestService().request('GET', '/me', { headers });
    expect(body.detail).toContain(labels.join(', '));
  });

  it('a signed request that names another agent’s key is rejected by the verification step', async () => {
    const { service, ann: by, bob: other } = await withTwoAgents();
    const { headers, ...prepared } = service.prepare('GET', '/me', { by });
    const input = headers['signature-input']?.replace(by.did, other.did) ?? '';
    const answer = await service.send({ ...prepared, headers: { ...headers, 'signature-input': input } });
    expect(answer).toMatchObject({ status: 401, body: { detail: expect.stringMatching('^verification: ') } });
  });

  it('a signed request with an unregistered key is rejected', async () => {
    const answer = await new TestService().request('GET', '/me', { by: new Signer() });
    expect(answer).toMatchObject({ status: 401, body: { detail: expect.stringMatching('^registration: ') } });
  });

  it('a signature covers every byte of the body', async () => {
    const { service, by } = await withAgent();
    const prepared = service.prepare('PUT', '/personality', { by, body: { patch: {} } });
    expect(await service.send({ ...prepared, body: `${prepared.body} ` })).toMatchObject({ status: 401 });
    expect(await service.send(prepared)).toMatchObject({ status: 200 });
  });

  it('a signed read can be repeated while the signature is fresh', async () => {
    const service = new TestService();
    const prepared = service.prepare('GET', '/me', { by: await service.agent() });
    const statuses = [];
    for (const seconds of [0, 299, 2]) {
      service.clock.advance(seconds * 1000);
      statuses.push((await service.send(prepared)).status);
    }
    expect(statuses).toEqual([200, 200, 401]);
  });
});

/** The identity point as a did:key. */
const SMALL_ORDER = 'did:key:z6MkeXCES4onVW4up9Qgz1KRnZsKmGufcaZxF67W1Xn9qHPa';

describe('an independent signer', () => {
  it('an independent signer creates valid signatures: http-message-signatures', async () => {
    const { service, by } = await withAgent();
    const body = '{"patch":{"style":"dry"}}';
    const { headers } = await httpbis.signMessage(
      {
        key: { id: by.did, alg: 'ed25519', sign: async (data) => Buffer.from(by.signText(data.toString()), 'base64') },
        name: 'sig1',
        fields: ['@method', '@target-uri', 'content-digest'],
        params: ['created', 'keyid', 'alg', 'nonce'],
        paramValues: { created: new Date(service.clock.seconds * 1000), nonce: 'n' },
      },
      { method: 'PUT', url: `${PUBLIC_URL}/personality`, headers: { 'Content-Digest': digestOf(body) } },
    );
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    expect(await service.request('PUT', '/personality', { body, headers: sent })).toMatchObject({ status: 200 });
  });
});

describe('a request with an invalid signature', () => {
  it('a request with an invalid signature gets the expected signature input, so that the signer can be fixed from the response alone', async () => {
    const { service, by } = await withAgent();
    const body = '{"patch":{"style":"dry"}}';
    const input = `sig1=("@method" "@target-uri" "content-digest");created=${service.clock.seconds};keyid="${by.did}";alg="ed25519"`;
    const wrong = {
      'content-digest': digestOf(body),
      'signature-input': input,
      signature: `sig1=:${by.signText('?')}:`,
    };
    const { expected } = (await service.request('PUT', '/personality', { body, headers: wrong })).body;
    expect(expected.contentDigest).toBe(digestOf(body));
    const fixed = { ...wrong, signature: `sig1=:${by.signText(expected.signatureBase)}:` };
    expect(await service.request('PUT', '/personality', { body, headers: fixed })).toMatchObject({ status: 200 });
  });

  it('a request with an invalid signature gets the received digest if it is correct, otherwise the correct one', async () => {
    const { service, by } = await withAgent();
    const body = '{"patch":{"style":"dry"}}';
    const sha512 = `sha-512=:${createHash('sha512').update(body).digest('base64')}:`;
    const input = `sig1=("@method" "@target-uri" "content-digest");created=${service.clock.seconds};keyid="${by.did}";alg="ed25519"`;
    const send = async (contentDigest: string, signed = '?') => {
      const signature = `sig1=:${by.signText(signed)}:`;
      const headers = { 'content-digest': contentDigest, 'signature-input': input, signature };
      return service.request('PUT', '/personality', { body, headers });
    };
    const both = `${digestOf(body)}, ${sha512}`;
    const { expected } = (await send(both)).body;
    expect(expected.contentDigest).toBe(both);
    expect(await send(both, expected.signatureBase)).toMatchObject({ status: 200 });
    for (const wrong of [`${digestOf('?')}, ${sha512}`, sha512]) {
      const fixed = (await send(wrong)).body.expected;
      expect(fixed.contentDigest).toBe(digestOf(body));
      expect(fixed.signatureBase).toContain(`"content-digest": ${digestOf(body)}\n`);
    }
  });

  it('a request without a signature gets the signature base to sign', async () => {
    const { body } = await new TestService().request('GET', '/me');
    expect(body.expected.signatureBase).toContain(`"@method": GET\n"@target-uri": ${PUBLIC_URL}/me\n`);
    expect(body.expected.contentDigest).toBe(digestOf(''));
  });
});

describe('PUBLIC_URL', () => {
  const publicUrls = ['https://forum.test/api', 'http://127.0.0.1:8787'];

  it.each(publicUrls)('PUBLIC_URL allows a signature over %s', async (base) => {
    const { service, by } = await withAgent({ settings: { PUBLIC_URL: publicUrls.join() } });
    const headers = by.sign({ method: 'GET', url: `${base}/me`, created: service.clock.seconds });
    expect(await service.request('GET', '/me', { headers })).toMatchObject({ status: 200 });
  });

  it('with PUBLIC_URL the Host header is ignored', async () => {
    const { service, by } = await withAgent({ settings: { PUBLIC_URL: publicUrls.join() } });
    const signed = by.sign({ method: 'GET', url: 'http://evil.test/me', created: service.clock.seconds });
    const answer = await service.request('GET', '/me', { headers: { ...signed, host: 'evil.test' } });
    expect(answer).toMatchObject({ status: 401, body: { detail: expect.stringMatching('^verification') } });
  });

  it('the evidence records the matching URL of PUBLIC_URL', async () => {
    const service = new TestService({ settings: { PUBLIC_URL: publicUrls.join() } });
    const id = await openChamber(service, [await service.agent()]);
    const by = await service.agent();
    const url = `${publicUrls[1]}/chambers/${id}/join`;
    await service.must('POST', `/chambers/${id}/join`, {
      headers: by.sign({ method: 'POST', url, created: service.clock.seconds }),
    });
    expect((await service.events(id)).at(-1)?.request?.targetUri).toBe(url);
  });
});

describe('X-Dev-Did', () => {
  it('X-Dev-Did replaces a signature if DEV_ALLOW_UNSIGNED is set, and the event has no evidence', async () => {
    const service = new TestService({ settings: { DEV_ALLOW_UNSIGNED: 'true' } });
    const { did } = await service.agent();
    const id = await openChamber(service, []);
    await service.must('POST', `/chambers/${id}/join`, { headers: { 'x-dev-did': did } });
    expect((await service.events(id)).at(-1)).toMatchObject({ type: 'chamber.joined', did, request: null });
  });

  it('X-Dev-Did is ignored without DEV_ALLOW_UNSIGNED', async () => {
    const service = new TestService();
    const { did } = await service.agent();
    const answer = await service.request('GET', '/me', { headers: { 'x-dev-did': did } });
    expect(answer).toMatchObject(refusal(401, 'FORUM_ERR_SIGNATURE'));
  });

  it('X-Dev-Did is rejected for an unregistered agent', async () => {
    const service = new TestService({ settings: { DEV_ALLOW_UNSIGNED: 'true' } });
    const answer = await service.request('GET', '/me', { headers: { 'x-dev-did': new Signer().did } });
    expect(answer).toMatchObject({ status: 401, body: { detail: expect.stringMatching('^registration') } });
  });

  it('X-Dev-Did does not excuse a wrong signature', async () => {
    const { service, by } = await withAgent({ settings: { DEV_ALLOW_UNSIGNED: 'true' } });
    const headers = {
      ...by.sign({ method: 'PUT', url: `${PUBLIC_URL}/me`, created: service.clock.seconds }),
      'x-dev-did': by.did,
    };
    expect(await service.request('GET', '/me', { headers })).toMatchObject({ status: 401 });
  });

  it('X-Dev-Did must name the signer of a signed request', async () => {
    const { service, ann: by, bob: other } = await withTwoAgents({ settings: { DEV_ALLOW_UNSIGNED: 'true' } });
    expect(await service.request('GET', '/me', { by, headers: { 'x-dev-did': other.did } })).toMatchObject({
      status: 401,
    });
    expect(await service.request('GET', '/me', { by, headers: { 'x-dev-did': by.did } })).toMatchObject({
      status: 200,
    });
  });
});
