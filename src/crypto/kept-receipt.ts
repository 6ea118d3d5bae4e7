// Receipts as clients keep them, one JSON object each. Untrusted, because other programs may write the files.
import * as v from 'valibot';
import { thumbprintOf } from './jwk.ts';
import { decodeKey } from './key-directory.ts';
import { type KeptReceipt, type ParsedReceipt, parseReceipt } from './receipt.ts';
import { isSignedBy, toVerifyingKey } from './verify.ts';

export const keptReceipt: v.GenericSchema<unknown, KeptReceipt> = v.object({
  request: v.object({
    method: v.string(),
    targetUri: v.string(),
    contentDigest: v.string(),
    signatureInput: v.string(),
    signature: v.string(),
  }),
  response: v.object({
    status: v.number(),
    contentDigest: v.string(),
    event: v.string(),
    logId: v.string(),
    body: v.string(),
    signatureInput: v.string(),
    signature: v.string(),
  }),
  key: v.object({ kty: v.literal('OKP'), crv: v.literal('Ed25519'), x: v.string() }),
});

/** Verifies a receipt under the key that it contains; throws an Error that names the problem. */
export function verifyKeptReceipt(receipt: KeptReceipt): ParsedReceipt {
  const parsed = parseReceipt(receipt);
  const publicKey = decodeKey(receipt.key.x);
  if (publicKey === undefined) throw new Error('its key is not an Ed25519 key');
  if (thumbprintOf(publicKey) !== parsed.keyid) throw new Error('it is kept with a key other than the one it names');
  if (isSignedBy(toVerifyingKey(publicKey), parsed.base, parsed.signature)) return parsed;
  throw new Error('its signature does not verify');
}
