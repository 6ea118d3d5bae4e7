// Verifies signatures quickly, because an agent checks two for each member of a chamber with rounds before it commits and reveals.
import { isSignedBy, toVerifyingKey } from '../crypto/verify.ts';
import { isNode } from './runtime.ts';

/**
 * Returns the same as isSignedBy for a key without a weakness. For such a key, Node's own Ed25519 accepts nothing that isSignedBy rejects
 * and takes a tenth of the time; if Node rejects a signature, isSignedBy decides.
 */
export function isSignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return isAcceptedByNode(publicKey, message, signature) || isSignedBy(toVerifyingKey(publicKey), message, signature);
}

/** Loads the module at run time, so that browser bundles do not refer to Node's modules. */
function isAcceptedByNode(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const node = isNode() ? process.getBuiltinModule?.('node:crypto') : undefined;
  if (node === undefined) return false;
  const x = Buffer.from(publicKey).toString('base64url');
  const key = node.createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return node.verify(null, message, key, signature);
}
