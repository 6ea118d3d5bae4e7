// Hints for connections that failed because of TLS, by error code.

/** OpenSSL's error codes for a response in plain HTTP. */
const PLAIN_HTTP_CODES: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
]);
const UNTRUSTED_CODES: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Returns text to append to the error message; undefined for other errors. */
export function tlsHint(code: string): string | undefined {
  if (PLAIN_HTTP_CODES.has(code)) return '. It does not speak TLS: use http:// instead of https://';
  if (UNTRUSTED_CODES.has(code))
    return '. Its certificate is not trusted here: add it, or its CA’s, with NODE_EXTRA_CA_CERTS=FILE';
  return undefined;
}
