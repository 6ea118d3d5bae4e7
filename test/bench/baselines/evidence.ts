// The minimal checks that every baseline performs on a request: body digest, headers, signature base.
import * as crypto from 'node:crypto';
import { parseDid } from '../../../src/crypto/did-key.ts';

export interface BaselineRequest {
  readonly method: string;
  readonly targetUri: string;
  readonly contentDigest: string;
  readonly signatureInput: string;
  readonly signature: string;
  readonly body: Buffer;
}

export interface Evidence {
  readonly did: string;
  readonly publicKey: Uint8Array;
  readonly base: Buffer;
  readonly signature: Buffer;
}

const INPUT =
  /^sig1=(\("@method" "@target-uri" "content-digest"\);created=(\d+);keyid="([^"]+)";alg="ed25519"(?:;nonce="[^"]*")?)$/;
const SIGNATURE = /^sig1=:([A-Za-z0-9+/=]+):$/;
const AGE_SECONDS_MAX = 300;

const keys = new Map<string, Uint8Array>();

/** Throws if the request is malformed or too old, or if its digest is wrong; does not check the signature. */
export function readEvidence(request: BaselineRequest): Evidence {
  const { method, targetUri, contentDigest, body } = request;
  const digest = crypto.createHash('sha256').update(body).digest('base64');
  const [, params, created, did] = INPUT.exec(request.signatureInput) ?? [];
  const [, signature] = SIGNATURE.exec(request.signature) ?? [];
  if (contentDigest !== `sha-256=:${digest}:`) throw new Error('digest');
  if (params === undefined || did === undefined || signature === undefined) throw new Error('form');
  if (Math.abs(Date.now() / 1000 - Number(created)) > AGE_SECONDS_MAX) throw new Error('age');
  const base = `"@method": ${method}\n"@target-uri": ${targetUri}\n"content-digest": ${contentDigest}\n"@signature-params": ${params}`;
  return { did, publicKey: publicKeyOf(did), base: Buffer.from(base), signature: Buffer.from(signature, 'base64') };
}

function publicKeyOf(did: string): Uint8Array {
  const known = keys.get(did);
  if (known !== undefined) return known;
  const key = parseDid(did);
  if (key === undefined) throw new Error('keyid');
  keys.set(did, key);
  return key;
}
