// Receipts (RFC 9421): if asked, the service signs that a request became an event.
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { parseReceipt, type Receipt } from '../../src/crypto/receipt.ts';
import { isSignedBy, toVerifyingKey } from '../../src/crypto/verify.ts';
import { openChamber } from '../kit/chambers.ts';
import { ACCEPT_RECEIPT, isValidReceipt, receiptOf } from '../kit/receipts.ts';
import { type Prepared, PUBLIC_URL, registrationOf, TestService, withAgent } from '../kit/test-service.ts';

const HEADERS = { 'accept-signature': ACCEPT_RECEIPT };

async function keysOf(service: TestService) {
  return (await service.must('GET', '/.well-known/http-message-signatures-directory')).keys;
}

async function joined(headers: Readonly<Record<string, string>> = HEADERS) {
  const { service, by } = await withAgent();
  const chamberId = await openChamber(service, []);
  const prepared = service.prepare('POST', `/chambers/${chamberId}/join`, { by, headers });
  const answer = await service.send(prepared);
  return { service, by, chamberId, prepared, answer, receipt: receiptOf(prepared, answer, PUBLIC_URL) };
}

async function lineOf(service: TestService, stream: number | string, eventId: number): Promise<Buffer> {
  return Buffer.from((await service.lines(stream))[eventId - 1] ?? '');
}

describe('a receipt', () => {
  it('a receipt verifies with an independent library, and names the event with the leaf of its line', async () => {
    const { service, chamberId, answer, receipt } = await joined();
    expect(answer.status).toBe(200);
    expect(await isValidReceipt(receipt, await keysOf(service))).toBe(true);
    const leaf = Buffer.from(leafHash(await lineOf(service, chamberId, 2))).toString('base64');
    expect(receipt.response).toMatchObject({ event: `${chamberId};id=2;leaf=:${leaf}:`, logId: service.log.logId });
    expect(answer.headers.get('cache-control')).toBe('no-transform');
    expect(answer.headers.get('access-control-expose-headers')).toMatch(
      /Content-Digest, Event, Signature-Input, Signature/,
    );
    const { receipts } = JSON.parse(String(await lineOf(service, chamberId, 1))).payload.serviceKeys;
    expect(receipt.response.signatureInput).toContain(
      `;keyid="${receipts}";alg="ed25519";nonce="n-1";tag="chamber-receipt"`,
    );
  });

  it.each<[string, (receipt: Receipt) => Receipt]>([
    ['body', (receipt) => withResponse(receipt, { body: '{"ok":true,"turnOrder":1}' })],
    ['status', (receipt) => withResponse(receipt, { status: 201 })],
    ['event', (receipt) => withResponse(receipt, { event: receipt.response.event.replace(';id=2', ';id=3') })],
    ['leaf', (receipt) => withResponse(receipt, { event: receipt.response.event.replace(/leaf=:..../, 'leaf=:AAAA') })],
    ['log', (receipt) => withResponse(receipt, { logId: 'ab'.repeat(16) })],
    ['method', (receipt) => withRequest(receipt, { method: 'PUT' })],
    ['target', (receipt) => withRequest(receipt, { targetUri: `${PUBLIC_URL}/chambers/2/join` })],
    ['request body', (receipt) => withRequest(receipt, { contentDigest: `sha-256=:${'A'.repeat(43)}=:` })],
    ['nonce of the request', (receipt) => edited(receipt, 'signatureInput', /nonce="./, 'nonce="-')],
    ['signature of the request', (receipt) => edited(receipt, 'signature', /=:...../, '=:AAAAA')],
  ])('a receipt with another %s is rejected by the library and by our code', async (_what, change) => {
    const { service, receipt } = await joined();
    const keys = await keysOf(service);
    expect(await isValidReceipt(change(receipt), keys)).toBe(false);
    expect(isValidByOurs(receipt, keys)).toBe(true);
    expect(isValidByOurs(change(receipt), keys)).toBe(false);
  });

  it('a receipt is returned for each retry, with the leaf of the written line', async () => {
    const { service, prepared, answer, receipt } = await joined();
    service.clock.advance(600_000);
    const again = await service.send(prepared);
    expect(again.body).toEqual(answer.body);
    const second = receiptOf(prepared, again, PUBLIC_URL);
    expect(second.response.event).toBe(receipt.response.event);
    expect(second.response.signatureInput).not.toBe(receipt.response.signatureInput);
    expect(await isValidReceipt(second, await keysOf(service))).toBe(true);
  });

  it('a receipt is issued for chambers, and for accounts under their DID', async () => {
    const { service, by } = await joined();
    const patch = service.prepare('PUT', '/personality', { by, body: { patch: { style: 'dry' } }, headers: HEADERS });
    const receipt = receiptOf(patch, await service.send(patch), PUBLIC_URL);
    expect(receipt.response.event).toMatch(new RegExp(`^"${by.did}";id=2;leaf=:`));
    expect(await isValidReceipt(receipt, await keysOf(service))).toBe(true);
  });

  it('a receipt is issued for a signed registration, but not for one that changed nothing, nor for its retry', async () => {
    const { service, by } = await joined();
    const prepare = (walletAddress: string) =>
      service.prepare('POST', '/register', { by, body: { ...registrationOf(by), walletAddress }, headers: HEADERS });
    const other = prepare(`0x${'cd'.repeat(20)}`);
    const receipt = receiptOf(other, await service.send(other), PUBLIC_URL);
    expect(await isValidReceipt(receipt, await keysOf(service))).toBe(true);
    service.clock.advance(1_000);
    const same = prepare(`0x${'cd'.repeat(20)}`);
    for (const _ of [1, 2]) expect(await isUnsigned(service, same)).toBe(true);
  });

  it('a receipt is not issued for an error', async () => {
    const { service, by, chamberId } = await joined();
    const again = service.prepare('POST', `/chambers/${chamberId}/join`, { by, headers: HEADERS });
    const { status, headers } = await service.send(again);
    expect([status, headers.get('signature')]).toEqual([409, null]);
  });
});

describe('the request for a receipt', () => {
  it.each<[string, string]>([
    ['with another label', ACCEPT_RECEIPT.replace('receipt=', 'r2=')],
    [
      'with the components in a different order',
      ACCEPT_RECEIPT.replace('"@status" "content-digest"', '"content-digest" "@status"'),
    ],
    [
      'with the parameters of a component in a different order',
      ACCEPT_RECEIPT.replaceAll(';req;key="sig1"', ';key="sig1";req'),
    ],
    ['without a nonce', ACCEPT_RECEIPT.replace(';nonce="n-1"', '')],
    ['without created', ACCEPT_RECEIPT.replace(';created', '')],
    ['with the algorithm', `${ACCEPT_RECEIPT};alg="ed25519"`],
    ['among other requests', `other=("@status");tag="x", ${ACCEPT_RECEIPT}`],
  ])('the request for a receipt is granted %s', async (_what, header) => {
    const { service, receipt } = await joined({ 'accept-signature': header });
    expect(await isValidReceipt(receipt, await keysOf(service))).toBe(true);
    expect(isValidByOurs(receipt, await keysOf(service))).toBe(true);
  });

  it.each<[string, string]>([
    ['that is malformed', 'receipt=('],
    ['with a different tag', ACCEPT_RECEIPT.replace('chamber-receipt', 'other')],
    ['without a tag', ACCEPT_RECEIPT.replace(';tag="chamber-receipt"', '')],
    ['with a missing component', ACCEPT_RECEIPT.replace('"event" ', '')],
    ['with an additional component', ACCEPT_RECEIPT.replace('"event" ', '"event" "date" ')],
    ['with a repeated component', ACCEPT_RECEIPT.replace('"event" ', '"event" "event" ')],
    ['with a component of the response instead of the request', ACCEPT_RECEIPT.replace('"@method";req', '"@method"')],
    ['for another signature of the request', ACCEPT_RECEIPT.replaceAll('key="sig1"', 'key="sig2"')],
    ['with an expiry', `${ACCEPT_RECEIPT};expires`],
    ['with a time', ACCEPT_RECEIPT.replace(';created', ';created=1')],
    ['with another algorithm', `${ACCEPT_RECEIPT};alg="rsa-pss-sha512"`],
    ['with an unknown key', `${ACCEPT_RECEIPT};keyid="other"`],
    ['with a nonce that is not a string', ACCEPT_RECEIPT.replace('nonce="n-1"', 'nonce=1')],
    ['that is not a list of components', 'receipt="@status";tag="chamber-receipt"'],
    ['that is empty', ''],
  ])(
    'a request for a receipt %s is ignored: the move is accepted, and the response is unsigned',
    async (_what, header) => {
      const { answer } = await joined({ 'accept-signature': header });
      expect(answer.status).toBe(200);
      expect([answer.headers.get('signature'), answer.headers.get('event')]).toEqual([null, null]);
    },
  );

  it('the request for a receipt is ignored in an unsigned request', async () => {
    const service = new TestService({ settings: { DEV_ALLOW_UNSIGNED: 'true' } });
    const { did } = await service.agent();
    const prepared = service.prepare('PUT', '/personality', {
      body: { patch: { style: 'dry' } },
      headers: { ...HEADERS, 'x-dev-did': did },
    });
    expect(await isUnsigned(service, prepared)).toBe(true);
  });
});

async function isUnsigned(service: TestService, prepared: Prepared): Promise<boolean> {
  const { status, headers } = await service.send(prepared);
  expect(status).toBe(200);
  return headers.get('signature') === null;
}

function isValidByOurs(receipt: Receipt, keys: Awaited<ReturnType<typeof keysOf>>): boolean {
  try {
    const { base, signature, keyid } = parseReceipt(receipt);
    const { x } = keys.find(({ kid }: { kid: string }) => kid === keyid);
    return isSignedBy(toVerifyingKey(Buffer.from(x, 'base64url')), base, signature);
  } catch {
    return false;
  }
}

function withResponse({ request, response }: Receipt, change: Partial<Receipt['response']>): Receipt {
  return { request, response: { ...response, ...change } };
}

function withRequest({ request, response }: Receipt, change: Partial<Receipt['request']>): Receipt {
  return { request: { ...request, ...change }, response };
}

function edited(receipt: Receipt, member: 'signatureInput' | 'signature', from: RegExp, to: string): Receipt {
  return withRequest(receipt, { [member]: receipt.request[member].replace(from, to) });
}
