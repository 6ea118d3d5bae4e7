// Requests receipts like an agent, and verifies them with an independent library.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import { leafHash } from '../../src/crypto/merkle.ts';
import { parseEventField, type Receipt } from '../../src/crypto/receipt.ts';
import type { PublishedKey } from '../../src/keys/service-keys.ts';
import { fromLine } from '../../src/vocabulary/events.ts';
import { get, type Wire, type WireAnswer } from './wire.ts';

/** The value of Accept-Signature in the specification. */
export const ACCEPT_RECEIPT =
  'receipt=("@status" "content-digest" "event" "log-id" "@method";req "@target-uri";req "content-digest";req ' +
  '"signature-input";req;key="sig1" "signature";req;key="sig1");created;nonce="n-1";tag="chamber-receipt"';

/** Returns the request with Accept-Signature, which its signature does not cover. */
export function askingForReceipt(request: Wire): Wire {
  return { ...request, headers: { ...request.headers, 'accept-signature': ACCEPT_RECEIPT } };
}

export async function readKeys(url: string): Promise<readonly PublishedKey[]> {
  return (await get(url, '/.well-known/http-message-signatures-directory')).body.keys;
}

/** Returns a message for each receipt that the log breaks: it must hold this event, with this leaf, for this request. */
export function unkeptPromises(
  receipts: readonly Receipt[],
  lines: ReadonlyMap<number | string, readonly string[]>,
): readonly string[] {
  return receipts.flatMap(({ request, response }) => {
    const { stream = '', eventId = 0, leaf = new Uint8Array() } = parseEventField(response.event) ?? {};
    const line = lines.get(stream)?.[eventId - 1];
    const isKept =
      line !== undefined &&
      Buffer.compare(leafHash(Buffer.from(line)), leaf) === 0 &&
      fromLine(line).request?.signature === request.signature;
    return isKept ? [] : [`the log breaks the promise of a receipt: ${response.event}`];
  });
}

export function receiptOf(
  { method, path, headers: sent }: Wire,
  { status, body, headers }: WireAnswer,
  base: string,
): Receipt {
  const received = (name: string) => headers.get(name) ?? '';
  return {
    request: {
      method,
      targetUri: base + path,
      contentDigest: sent['content-digest'] ?? '',
      signatureInput: sent['signature-input'] ?? '',
      signature: sent['signature'] ?? '',
    },
    response: {
      status,
      body: JSON.stringify(body),
      contentDigest: received('content-digest'),
      event: received('event'),
      logId: received('log-id'),
      signatureInput: received('signature-input'),
      signature: received('signature'),
    },
  };
}

/** Verifies with http-message-signatures, node:crypto and the key directory. The library does not check the body. */
export async function isValidReceipt({ request, response }: Receipt, keys: readonly PublishedKey[]): Promise<boolean> {
  const digest = createHash('sha256').update(response.body).digest('base64');
  if (response.contentDigest !== `sha-256=:${digest}:`) return false;
  const isVerified = await httpbis.verifyMessage(
    {
      notAfter: Number.MAX_SAFE_INTEGER,
      requiredParams: ['created', 'keyid', 'alg', 'tag'],
      keyLookup: async ({ keyid, tag }) => {
        const key = keys.find(({ kid, purpose }) => kid === keyid && purpose === 'receipts');
        if (key === undefined || tag !== 'chamber-receipt') return null;
        const { kty, crv, x } = key;
        const publicKey = createPublicKey({ key: { kty, crv, x }, format: 'jwk' });
        return { algs: ['ed25519'], verify: async (data, signature) => verify(null, data, publicKey, signature) };
      },
    },
    {
      status: response.status,
      headers: {
        'content-digest': response.contentDigest,
        event: response.event,
        'log-id': response.logId,
        'signature-input': response.signatureInput,
        signature: response.signature,
      },
    },
    {
      method: request.method,
      url: request.targetUri,
      headers: {
        'content-digest': request.contentDigest,
        'signature-input': request.signatureInput,
        signature: request.signature,
      },
    },
  );
  return isVerified === true;
}
