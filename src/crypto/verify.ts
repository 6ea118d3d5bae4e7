// The port of signature verification: RFC 8032, cofactorless, S < L, over keys in which weaknessOf finds nothing.

/** Resolves to whether the 64-byte signature over the message is right under the 32-byte public key. */
export type SignatureVerifier = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => Promise<boolean>;
