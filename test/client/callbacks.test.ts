// A receiver accepts a request as a callback only if the service has recently signed it for the receiver's URL.
import { createPrivateKey, sign } from 'node:crypto';
import { expect, it } from 'vitest';
import { ForumClient } from '../../src/client/index.ts';
import { CALLBACK_COMPONENTS, callbackBase, callbackParams } from '../../src/crypto/callback.ts';
import { contentDigestOf } from '../../src/crypto/content-digest.ts';
import { thumbprintOf } from '../../src/crypto/jwk.ts';
import { serve } from '../kit/serve.ts';

const URL_SET = 'https://agent.example/wake?agent=1';
const DID = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK';
const NOW = 1_893_500_701;
const DELIVERY = {
  type: 'todo.due',
  did: DID,
  service: 'https://chambers.example',
  logId: '0123456789abcdef0123456789abcdef',
  due: {
    chamberId: 12,
    must: 'pass',
    phaseEndsAt: '2030-01-01T13:00:00.000Z',
    turnEndsAt: '2030-01-01T12:26:00.000Z',
    lastEventId: 5,
  },
  more: 0,
};
const PKCS8_HEAD = '302e020100300506032b657004220420';

interface Sent {
  readonly seed?: string;
  readonly method?: string;
  readonly body?: string;
  readonly sentBody?: string;
  readonly targetUri?: string;
  readonly created?: number;
  readonly timestamp?: string;
  /** Changes the text of Signature-Input before it is signed. */
  readonly params?: (params: string) => string;
}

function keyOf(seed: string) {
  const key = createPrivateKey({ key: Buffer.from(PKCS8_HEAD + seed.repeat(32), 'hex'), format: 'der', type: 'pkcs8' });
  const { x = '' } = key.export({ format: 'jwk' });
  return { key, x, keyid: thumbprintOf(Buffer.from(x, 'base64url')) };
}

function requestOf(sent: Sent = {}): Request {
  const { seed = '07', method = 'POST', body = JSON.stringify(DELIVERY), created = NOW, targetUri = URL_SET } = sent;
  const { key, keyid } = keyOf(seed);
  const params = (sent.params ?? ((each) => each))(callbackParams({ created, keyid }));
  const fields = {
    '@method': method,
    '@target-uri': targetUri,
    'content-digest': contentDigestOf(Buffer.from(body)),
    'webhook-id': 'an-id',
    'webhook-timestamp': sent.timestamp ?? `${created}`,
  };
  const components = [...params.matchAll(/"([^"]+)"(?=[ )])/g)].map(([, name]) => name);
  const base = callbackBase(fields, params, components as unknown as typeof CALLBACK_COMPONENTS);
  const signature = sign(null, Buffer.from(base), key).toString('base64');
  const { '@method': _, '@target-uri': __, ...headers } = fields;
  return new Request('http://behind.a.proxy/', {
    method,
    headers: { ...headers, 'Signature-Input': `cb=${params}`, Signature: `cb=:${signature}:` },
    body: sent.sentBody ?? body,
  });
}

/** A service that publishes the key of seed 07…, and counts how often it is asked. */
async function openReceiver(key: object = {}) {
  let reads = 0;
  const url = await serve((_request, response) => {
    reads++;
    response.sendDate = false;
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: keyOf('07').x, purpose: 'receipts', ...key };
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }));
  });
  const clock = { now: () => NOW * 1_000, steady: () => performance.now(), sleep: async () => {} };
  const forum = new ForumClient(url, { clock });
  return {
    reads: () => reads,
    verify: (request: Request, did = DID) => forum.verifyCallback(request, { url: `${URL_SET}#part`, did }),
  };
}

it('verifying a callback returns the duty that the service signed for this URL and agent, and fetches the keys once', async () => {
  const { verify, reads } = await openReceiver();
  for (let round = 0; round < 3; round++) {
    expect(await verify(requestOf())).toEqual({ id: 'an-id', ...DELIVERY });
  }
  expect(reads()).toBe(1);
});

it('an example that the service has signed is valid', async () => {
  const { verify } = await openReceiver();
  const request = new Request('http://127.0.0.1/', {
    method: 'POST',
    headers: {
      'webhook-id': '4PxeX6tlwrrJI_ZEWAmjn8iPo0nJ4wZ1Z_EYHDcQpnE',
      'webhook-timestamp': '1893500701',
      'Content-Digest': 'sha-256=:a0eEEFPWvmdypXZA612Yf8lbX7+H1WS9m1u+9tohORE=:',
      'Signature-Input':
        'callback=("@method" "@target-uri" "content-digest" "webhook-id" "webhook-timestamp");created=1893500701;keyid="--6IM5l0OosLj9yWskISYhUA3n_3CURQkmrYMSha_ck";alg="ed25519";tag="chamber-callback"',
      Signature: 'callback=:97Eh8GD5Bnl0ELyKtcR9t3az4JCjYFkg6bDnI32mmBZU/qJlxlSG5g5HPJTuI3rH78kSW16pQcCEHT7es7XDDA==:',
    },
    body: JSON.stringify(DELIVERY),
  });
  expect(await verify(request)).toMatchObject({ id: '4PxeX6tlwrrJI_ZEWAmjn8iPo0nJ4wZ1Z_EYHDcQpnE', due: DELIVERY.due });
});

it('verifying a challenge returns the challenge with its answer', async () => {
  const { verify } = await openReceiver();
  const body = JSON.stringify({ type: 'callback.verify', challenge: 'c0ffee' });
  const answer = { challenge: 'c0ffee' };
  expect(await verify(requestOf({ body }))).toEqual({ type: 'callback.verify', id: 'an-id', ...answer, answer });
});

it('the covered components may be in any order', async () => {
  const { verify } = await openReceiver();
  const reversed = `(${CALLBACK_COMPONENTS.map((name) => `"${name}"`)
    .toReversed()
    .join(' ')})`;
  const params = (each: string) => each.replace(/^\([^)]*\)/, reversed);
  expect(await verify(requestOf({ params }))).toMatchObject({ type: 'todo.due' });
});

const without = (component: string) => (params: string) => params.replace(` "${component}"`, '');

it.each<readonly [string, Sent, string]>([
  ['another body', { sentBody: JSON.stringify({ ...DELIVERY, more: 1 }) }, 'Content-Digest is not the SHA-256'],
  ['another URL', { targetUri: 'https://agent.example/other' }, 'its signature does not verify'],
  ['another method', { method: 'PUT' }, 'sent with PUT'],
  ['an old signature', { created: NOW - 301 }, 'signed 301 s ago'],
  ['a signature from the future', { created: NOW + 301 }, 'signed 301 s from now'],
  ['another timestamp', { timestamp: `${NOW + 1}` }, 'webhook-timestamp differs from the time of its signature'],
  ['a key that is not the service’s', { seed: '08' }, 'not in the key directory'],
  ['an uncovered id', { params: without('webhook-id') }, 'must cover @method'],
  ['an uncovered digest', { params: without('content-digest') }, 'must cover @method'],
  ['an extra parameter', { params: (params) => `${params};expires=1` }, 'not those of a callback'],
  [
    'another tag',
    { params: (params) => params.replace('chamber-callback', 'chamber-receipt') },
    'no signature with the tag',
  ],
  ['another algorithm', { params: (params) => params.replace('ed25519', 'hmac-sha256') }, 'not those of a callback'],
  [
    'a number beyond all limits',
    { params: (params) => params.replace(/created=\d+/, `created=${'1'.repeat(400)}`) },
    'its Signature-Input header is malformed',
  ],
  ['a body that is not JSON', { body: '{' }, ''],
  ['a body without a duty', { body: '{"type":"todo.due"}' }, 'did is missing'],
  ['an unknown type', { body: '{"type":"chamber.closed"}' }, 'is unknown to this version'],
  ['a body of one megabyte', { body: 'x'.repeat(1_000_000) }, 'its body is longer than 16384 bytes'],
])('a callback is rejected with %s', async (_name, sent, problem) => {
  const { verify } = await openReceiver();
  await expect(verify(requestOf(sent))).rejects.toMatchObject({
    code: 'CLIENT_ERR_CALLBACK',
    message: expect.stringContaining(problem),
  });
});

it('callbacks without a signature, with a malformed one or with an expired key are rejected', async () => {
  const { verify } = await openReceiver();
  const garbage = { 'Signature-Input': 'x=(', Signature: ':::', 'webhook-id': '1', 'webhook-timestamp': '1' };
  for (const headers of [{}, garbage] as Record<string, string>[]) {
    const request = new Request('http://127.0.0.1/', { method: 'POST', headers, body: '{}' });
    await expect(verify(request)).rejects.toMatchObject({ code: 'CLIENT_ERR_CALLBACK' });
  }
  const { verify: verifyLater } = await openReceiver({ exp: NOW });
  await expect(verifyLater(requestOf())).rejects.toMatchObject({ message: expect.stringContaining('had expired') });
});

it('a callback for another agent is rejected', async () => {
  const { verify } = await openReceiver();
  await expect(verify(requestOf(), 'did:key:z6MkOther')).rejects.toMatchObject({
    code: 'CLIENT_ERR_CALLBACK',
    message: expect.stringContaining('for another agent'),
  });
});

it('unknown keys do not each cause a request to the service', async () => {
  const { verify, reads } = await openReceiver();
  for (let round = 0; round < 20; round++) await verify(requestOf({ seed: '08' })).catch(() => {});
  expect(reads()).toBe(1);
});

it('verifying anything but an unread Request is an input error', async () => {
  const { verify } = await openReceiver();
  const read = requestOf();
  await read.text();
  const { method, headers, body } = requestOf();
  for (const [request, problem] of [
    [{ method, headers, body: JSON.stringify(DELIVERY) }, 'must be a Request of the Fetch API'],
    [{ method, headers: Object.fromEntries(headers), body }, 'must be a Request of the Fetch API'],
    [undefined, 'must be a Request of the Fetch API'],
    [read, 'has already been read'],
  ] as const) {
    // JavaScript programs pass the request object of their framework.
    await expect(verify(request as unknown as Request)).rejects.toMatchObject({
      code: 'CLIENT_ERR_INPUT',
      message: expect.stringContaining(problem),
    });
  }
});
