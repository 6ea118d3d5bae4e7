// The baseline for audit, on one thread: it reads lines, parses them with JSON.parse, and verifies their signatures with node:crypto and
// cached keys. It prints the number of valid signatures.
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseDid } from '../../../src/crypto/did-key.ts';
import { parseSignature, signatureBase } from '../../../src/crypto/http-signature.ts';

const keys = new Map<string, KeyObject>();
let valid = 0;
for await (const line of createInterface({ input: createReadStream(process.argv[2] ?? '') })) {
  const { request, did } = JSON.parse(line);
  const parsed = parseSignature(request);
  const key = keys.get(did) ?? keyOf(did);
  keys.set(did, key);
  if (verify(null, Buffer.from(signatureBase(parsed, request)), key, parsed.signature)) valid++;
}
process.stdout.write(`${valid}\n`);

function keyOf(did: string): KeyObject {
  const x = Buffer.from(parseDid(did) ?? []).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}
