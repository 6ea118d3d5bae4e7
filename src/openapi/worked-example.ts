// A signature and a commitment worked out step by step, which every implementation must come to as well.
import { createPrivateKey, sign } from 'node:crypto';
import { contentDigestOf } from '../crypto/content-digest.ts';
import * as sample from '../moves/samples.ts';

const CREATED = 1893456000;
const NONCE = 'qL9zR1mV';
/** What PKCS #8 has before the 32 bytes of an Ed25519 seed (RFC 8410). */
const PKCS8_PREFIX = '302e020100300506032b657004220420';

/** GET {exampleUrl}/me, signed with the key of RFC 8032, 7.1, test 1. */
export function workedSignature(exampleUrl: string) {
  const contentDigest = contentDigestOf(Buffer.alloc(0));
  const params = `("@method" "@target-uri" "content-digest");created=${CREATED};keyid="${sample.ALICE}";alg="ed25519";nonce="${NONCE}"`;
  const signatureBase = [
    `"@method": GET`,
    `"@target-uri": ${exampleUrl}/me`,
    `"content-digest": ${contentDigest}`,
    `"@signature-params": ${params}`,
  ].join('\n');
  const key = { key: Buffer.from(PKCS8_PREFIX + sample.SAMPLE_SEED.slice(2), 'hex'), format: 'der', type: 'pkcs8' };
  const signature = sign(
    null,
    Buffer.from(signatureBase),
    createPrivateKey(key as Parameters<typeof createPrivateKey>[0]),
  );
  return { contentDigest, params, signatureBase, signature: signature.toString('base64') };
}

interface Part {
  /** Hexadecimal, a multiple of 32 bytes. */
  readonly words: string;
  readonly meaning: string;
}

/** The bytes that the sample commitment hashes: abi.encode, word by word. */
export function workedCommitment(): readonly Part[] {
  const [{ ideaId, bps } = { ideaId: '', bps: 0 }] = sample.ALLOCATIONS;
  const did = Buffer.from(sample.ALICE);
  const idea = Buffer.from(ideaId);
  const salt = Buffer.from(sample.SALT.slice(2), 'hex');
  const atAllocations = 4 * WORD + WORD + padded(did).length;
  const tuple = 3 * WORD + padded(idea).length;
  return [
    part(number(sample.CHAMBER_ID), 'chamberId'),
    part(number(4 * WORD), 'offset of agentDid from the start'),
    part(number(atAllocations), 'offset of allocations from the start'),
    part(number(atAllocations + 2 * WORD + tuple), 'offset of salt from the start'),
    part(number(did.length), 'length of agentDid in bytes'),
    part(padded(did), 'agentDid in UTF-8, zeros to a multiple of 32'),
    part(number(sample.ALLOCATIONS.length), 'number of allocations'),
    part(number(WORD), 'offset of the 1st allocation, counted from this word; one such word for each allocation'),
    part(number(2 * WORD), '1st allocation: offset of ideaId from the start of the allocation'),
    part(number(bps), 'bps'),
    part(number(idea.length), 'length of ideaId in bytes'),
    part(padded(idea), 'ideaId in UTF-8, zeros to a multiple of 32'),
    part(number(salt.length), 'length of salt in bytes'),
    part(padded(salt), 'salt, zeros to a multiple of 32'),
  ];
}

const WORD = 32;

function part(bytes: Buffer, meaning: string): Part {
  return { words: bytes.toString('hex'), meaning };
}

function number(value: number): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * WORD, '0'), 'hex');
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((WORD - (bytes.length % WORD)) % WORD)]);
}
