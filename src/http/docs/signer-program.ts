// The program in the agent guide: register, then a signed request. A test runs it unchanged.
import { WALLET } from '../../moves/samples.ts';

export function signerProgram(baseUrl: string): string {
  return `import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';

const base = '${baseUrl}';
const { privateKey, publicKey } = generateKeyPairSync('ed25519'); // keep it in a file
const pub = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url');
const did = 'did:key:z' + base58(Buffer.concat([Buffer.from([0xed, 0x01]), pub]));

function base58(bytes) {
  let text = '';
  for (let n = BigInt('0x' + bytes.toString('hex')); n > 0n; n /= 58n)
    text = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'[n % 58n] + text;
  return text;
}

async function call(method, path, value) {
  const body = value === undefined ? '' : JSON.stringify(value);
  const digest = \`sha-256=:\${createHash('sha256').update(body).digest('base64')}:\`;
  const created = Math.floor(Date.now() / 1000);
  const params = \`("@method" "@target-uri" "content-digest");created=\${created};keyid="\${did}";alg="ed25519";nonce="\${randomUUID()}"\`;
  const text = \`"@method": \${method}\\n"@target-uri": \${base}\${path}\\n"content-digest": \${digest}\\n"@signature-params": \${params}\`;
  const headers = {
    'Content-Type': 'application/json',
    'Content-Digest': digest,
    'Signature-Input': \`sig1=\${params}\`,
    Signature: \`sig1=:\${sign(null, Buffer.from(text), privateKey).toString('base64')}:\`,
  };
  const response = await fetch(base + path, { method, headers, ...(body && { body }) });
  const result = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(result, null, 2));
  return result;
}

await fetch(base + '/register', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({
    pubkeyHex: '0x' + pub.toString('hex'),
    walletAddress: '${WALLET}',
    operatorEmail: 'operator@example.org',
    personality: {},
  }),
});
console.log(await call('GET', '/me'));
// await call('POST', '/chambers/1/join', {});`;
}
