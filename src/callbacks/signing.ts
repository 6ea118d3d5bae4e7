// Signs a callback with the receipts key. Each attempt has a new signature.
import { hash } from 'node:crypto';
import { CALLBACK_LABEL, callbackBase, callbackParams } from '../crypto/callback.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Post } from './post.ts';

export interface CallbackSigner {
  readonly keys: Pick<ServiceKeys, 'current'>;
  /** Resolves to the 64-byte Ed25519 signature, with the key of the 32-byte seed. */
  readonly sign: (seed: Uint8Array, message: Uint8Array) => Promise<Uint8Array>;
  readonly now: () => Millis;
  readonly version: string;
}

export async function signedPost(
  url: URL,
  id: string,
  value: unknown,
  { keys, sign, now, version }: CallbackSigner,
): Promise<Omit<Post, 'kind' | 'isWanted'>> {
  const body = Buffer.from(JSON.stringify(value));
  const at = now();
  const created = Math.floor(at / 1000);
  const key = keys.current('receipts', at);
  const contentDigest = `sha-256=:${hash('sha256', body, 'base64')}:`;
  const params = callbackParams({ created, keyid: key.thumbprint });
  const request = {
    '@method': 'POST',
    '@target-uri': url.href,
    'content-digest': contentDigest,
    'webhook-id': id,
    'webhook-timestamp': String(created),
  };
  const signature = await sign(key.seed, Buffer.from(callbackBase(request, params)));
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `chamber-coordination-service/${version}`,
    'webhook-id': id,
    'webhook-timestamp': String(created),
    'Content-Digest': contentDigest,
    'Signature-Input': `${CALLBACK_LABEL}=${params}`,
    Signature: `${CALLBACK_LABEL}=:${Buffer.from(signature).toString('base64')}:`,
  };
  return { url, headers, body };
}
