// Hints for connections that failed because of TLS, by error code.

/** OpenSSL's errors if the response is plain HTTP. */
const WITHOUT_TLS: ReadonlySet<string> = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);
const NOT_TRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Returns text to append to the error's sentence; undefined for other errors. */
export function tlsHint(code: string): string | undefined {
  if (WITHOUT_TLS.has(code)) return '. It does not speak TLS: use http:// instead of https://';
  if (NOT_TRUSTED.has(code))
    return '. Its certificate is not trusted here: name it, or its CA’s, by NODE_EXTRA_CA_CERTS=FILE';
  return undefined;
}
