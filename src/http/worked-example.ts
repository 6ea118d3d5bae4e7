// A signature and a commitment, computed step by step: test vectors for other implementations.
import { sign } from 'node:crypto';
import { encodeOpening } from '../crypto/commitment.ts';
import { contentDigestOf } from '../crypto/content-digest.ts';
import { privateKeyOf } from '../keys/private-key.ts';
import * as sample from '../moves/samples.ts';
import { fromHex } from '../vocabulary/values.ts';

export const EXAMPLE_URL = 'https://chambers.example.org';
export const EXAMPLE_PARAMS = `("@method" "@target-uri" "content-digest");created=1893499200;keyid="${sample.ALICE}";alg="ed25519";nonce="qL9zR1mV"`;

/** Signs GET /me with the key of RFC 8032, 7.1, test 1. */
export function workedSignature() {
  const contentDigest = contentDigestOf(Buffer.alloc(0));
  const signatureBase = `"@method": GET
"@target-uri": ${EXAMPLE_URL}/me
"content-digest": ${contentDigest}
"@signature-params": ${EXAMPLE_PARAMS}`;
  const key = privateKeyOf(fromHex(sample.SAMPLE_SEED));
  const signature = sign(null, Buffer.from(signatureBase), key).toString('base64');
  return { contentDigest, signatureBase, signature };
}

const WORD_MEANINGS = [
  'chamberId',
  'offset of agentDid from the start',
  'offset of allocations from the start',
  'offset of salt from the start',
  'length of agentDid in bytes',
  'agentDid in UTF-8, zero-padded to a multiple of 32',
  '',
  'number of allocations',
  'offset of the 1st allocation, counted from this word; one such word for each allocation',
  '1st allocation: offset of ideaId from the start of the allocation',
  'bps',
  'length of ideaId in bytes',
  'ideaId in UTF-8, zero-padded to a multiple of 32',
  'length of salt in bytes',
  'salt, zero-padded to a multiple of 32',
];

/** Returns the 32-byte words of abi.encode that the sample commitment hashes, each with its meaning. */
export function workedCommitment() {
  const { CHAMBER_ID, ALICE, ALLOCATIONS, SALT } = sample;
  const encoded = encodeOpening({ chamberId: CHAMBER_ID, did: ALICE, allocations: ALLOCATIONS, salt: SALT });
  const words = encoded.slice(2).match(/.{64}/g) ?? [];
  return words.map((word, index) => ({ word, meaning: WORD_MEANINGS[index] ?? '' }));
}
