// Signs requests for the other programs, as /agent-guide shows: as the agent of agent.pem, or as a new one.
import { createHash, createPrivateKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';

const { BASE_URL, DID } = process.env;

function signedRequest({ did, key }, { method, path, value }) {
  const [url, body] = [BASE_URL + path, JSON.stringify(value)];
  const digest = `sha-256=:${createHash('sha256')
    .update(body ?? '')
    .digest('base64')}:`;
  const created = Math.floor(Date.now() / 1000);
  const params = `("@method" "@target-uri" "content-digest");created=${created};keyid="${did}";alg="ed25519";nonce="${randomUUID()}"`;
  const base = `"@method": ${method}\n"@target-uri": ${url}\n"content-digest": ${digest}\n"@signature-params": ${params}`;
  const headers = {
    ...(body && { 'Content-Type': 'application/json' }),
    'Content-Digest': digest,
    'Signature-Input': `sig1=${params}`,
    Signature: `sig1=:${sign(null, Buffer.from(base), key).toString('base64')}:`,
  };
  return { method, url, headers, ...(body && { body }) };
}

export const signed = signedRequest(
  { did: DID, key: createPrivateKey(readFileSync('agent.pem')) },
  { method: 'PUT', path: '/personality', value: { patch: { style: 'dry' } } },
);

/** Registers a new agent with its wallet, in the two requests of src/http/README.md, and returns GET /me. */
export async function register(wallet) {
  const { privateKey: key, publicKey } = generateKeyPairSync('ed25519');
  const bytes = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url');
  const content = { pubkeyHex: `0x${bytes.toString('hex')}`, walletAddress: wallet.address, personality: {} };
  const first = { ...content, operatorEmail: 'ops@example.org' };
  const headers = { 'Content-Type': 'application/json' };
  const { did } = await call({ method: 'POST', url: `${BASE_URL}/register`, headers, body: JSON.stringify(first) });
  const issuedAt = new Date().toISOString();
  const lines = [
    'Chamber Coordination Service wallet proof',
    `agent: ${did}`,
    `wallet: ${wallet.address}`,
    `service: ${BASE_URL}`,
    `issued: ${issuedAt}`,
  ];
  const proof = { issuedAt, walletSignature: await wallet.sign(lines.join('\n')) };
  await call(signedRequest({ did, key }, { method: 'POST', path: '/register', value: { ...content, ...proof } }));
  return call(signedRequest({ did, key }, { method: 'GET', path: '/me' }));
}

async function call({ url, ...request }) {
  const response = await fetch(url, request);
  const result = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(result));
  return result;
}
