import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/ed25519.json' with { type: 'json' };
import { signatureHeaders, toSigner } from '../../src/client/signing.ts';
import { isSignature } from '../../src/client/verify.ts';
import { contentDigestOf } from '../../src/crypto/content-digest.ts';
import { parseDid } from '../../src/crypto/did-key.ts';
import { parseSignature, signatureBase } from '../../src/crypto/http-signature.ts';
import { fromHex } from '../../src/vocabulary/values.ts';

// RFC 8032, section 7.1, test 1.
const SEED = '0x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
const PUBLIC_KEY = '0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
const UNSIGNED = { method: 'POST', targetUri: 'https://forum.test/chambers', body: '{"name":"Größe"}' };

describe('a signed request', () => {
  const signer = toSigner(SEED);
  const headers = signatureHeaders(signer, UNSIGNED, 1_700_000_000_999);

  it('a signed request uses the key that RFC 8032 derives from the seed', () => {
    expect(signer.pubkeyHex).toBe(PUBLIC_KEY);
  });

  it('node:crypto verifies a signed request over the base that the service computes', () => {
    const parsed = parseSignature({ signatureInput: headers['Signature-Input'], signature: headers.Signature });
    expect(parsed).toMatchObject({ created: 1_700_000_000, keyid: signer.did });
    const x = Buffer.from(parseDid(signer.did) ?? []).toString('base64url');
    const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
    const base = signatureBase(parsed, { ...UNSIGNED, contentDigest: headers['Content-Digest'] });
    expect(verify(null, Buffer.from(base), key, parsed.signature)).toBe(true);
  });

  it('a signed request has the digest of its body', () => {
    expect(headers['Content-Digest']).toBe(contentDigestOf(Buffer.from(UNSIGNED.body)));
  });

  it('a signed request differs from the same request signed again', () => {
    const again = signatureHeaders(signer, UNSIGNED, 1_700_000_000_999);
    expect(again.Signature).not.toBe(headers.Signature);
  });
});

it.each(vectors)('the client verifies signatures by the service’s rule: $comment', ({ isValid, ...vector }) => {
  const [publicKey, message, signature] = [vector.publicKey, vector.message, vector.signature].map(fromHex);
  expect(isSignature(publicKey as Uint8Array, message as Uint8Array, signature as Uint8Array)).toBe(isValid);
});
