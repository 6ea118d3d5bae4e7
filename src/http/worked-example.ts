// A signature and a commitment worked out step by step: test vectors for every implementation.
import { createPrivateKey, sign } from 'node:crypto';
import { encodeOpening } from '../crypto/commitment.ts';
import { contentDigestOf } from '../crypto/content-digest.ts';
import * as sample from '../moves/samples.ts';

export const EXAMPLE_URL = 'https://chambers.example.org';
export const EXAMPLE_PARAMS = `("@method" "@target-uri" "content-digest");created=1893499200;keyid="${sample.ALICE}";alg="ed25519";nonce="qL9zR1mV"`;
/** PKCS #8 before the 32 bytes of an Ed25519 seed (RFC 8410). */
const PKCS8_PREFIX = '302e020100300506032b657004220420';

/** GET /me, signed with the key of RFC 8032, 7.1, test 1. */
export function workedSignature() {
  const contentDigest = contentDigestOf(Buffer.alloc(0));
  const signatureBase = `"@method": GET
"@target-uri": ${EXAMPLE_URL}/me
"content-digest": ${contentDigest}
"@signature-params": ${EXAMPLE_PARAMS}`;
  const key = Buffer.from(PKCS8_PREFIX + sample.SAMPLE_SEED.slice(2), 'hex');
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const signature = sign(null, Buffer.from(signatureBase), privateKey).toString('base64');
  return { contentDigest, signatureBase, signature };
}

const WORD_MEANINGS = [
  'chamberId',
  'offset of agentDid from the start',
  'offset of allocations from the start',
  'offset of salt from the start',
  'length of agentDid in bytes',
  'agentDid in UTF-8, zeros to a multiple of 32',
  '',
  'number of allocations',
  'offset of the 1st allocation, counted from this word; one such word for each allocation',
  '1st allocation: offset of ideaId from the start of the allocation',
  'bps',
  'length of ideaId in bytes',
  'ideaId in UTF-8, zeros to a multiple of 32',
  'length of salt in bytes',
  'salt, zeros to a multiple of 32',
];

/** The 32-byte words that the sample commitment hashes: abi.encode, each with its meaning. */
export function workedCommitment() {
  const { CHAMBER_ID, ALICE, ALLOCATIONS, SALT } = sample;
  const encoded = encodeOpening({ chamberId: CHAMBER_ID, did: ALICE, allocations: ALLOCATIONS, salt: SALT });
  const words = encoded.slice(2).match(/.{64}/g) ?? [];
  return words.map((word, index) => ({ word, meaning: WORD_MEANINGS[index] ?? '' }));
}
