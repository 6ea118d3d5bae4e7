// The load generator's agents: keys, DIDs and requests, signed before the clock starts, as the raw bytes of an HTTP/1.1 request.
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { toDid } from '../../../src/crypto/did-key.ts';

export interface Agent {
  readonly did: string;
  readonly pubkeyHex: string;
  readonly privateKey: KeyObject;
}

export function makeAgent(): Agent {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  return { did: toDid(raw), pubkeyHex: `0x${raw.toString('hex')}`, privateKey };
}

export interface RequestOptions {
  /** The service's host and port. */
  readonly authority: string;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Headers that the signature does not cover. */
  readonly headers?: Readonly<Record<string, string>>;
}

let nonce = 0;

/** Returns a unique HTTP request with Content-Digest, Signature-Input and Signature (RFC 9421). */
export function signedRequest(agent: Agent, options: RequestOptions): Buffer {
  const { authority, method, path, body, headers } = options;
  const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
  const created = Math.floor(Date.now() / 1000);
  const params = `("@method" "@target-uri" "content-digest");created=${created};keyid="${agent.did}";alg="ed25519";nonce="${(++nonce).toString(36)}"`;
  const base = `"@method": ${method}\n"@target-uri": http://${authority}${path}\n"content-digest": ${digest}\n"@signature-params": ${params}`;
  const signature = sign(null, Buffer.from(base), agent.privateKey).toString('base64');
  return rawRequest(options, {
    ...headers,
    'Content-Digest': digest,
    'Signature-Input': `sig1=${params}`,
    Signature: `sig1=:${signature}:`,
  });
}

export function rawRequest(options: RequestOptions, headers: Readonly<Record<string, string>> = {}): Buffer {
  const { authority, method, path, body } = options;
  const content = body === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  const lines = Object.entries({ Host: authority, ...content, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}
