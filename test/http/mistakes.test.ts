// Common mistakes of signers: each is rejected, and can be fixed with only the error and the key.
import { describe, expect, it } from 'vitest';
import { digestOf, type Signer } from '../kit/signer.ts';
import { type Answer, PUBLIC_URL, refusal, withAgent } from '../kit/test-service.ts';

const BODY = '{"patch":{"style":"dry"}}';
const PATH = '/personality';
const OTHER_SCHEME = PUBLIC_URL.replace(/^https?/, (scheme) => (scheme === 'http' ? 'https' : 'http'));

interface Attempt {
  readonly method: string;
  readonly url: string;
  readonly digest: string;
  /** The components in signing order. */
  readonly components: readonly string[];
  readonly params: string;
  readonly label: string;
  readonly ending: string;
  readonly encode: (base64: string) => string;
}

function attempt(by: Signer, created: number, mistake: Partial<Attempt>): Record<string, string> {
  const order = '("@method" "@target-uri" "content-digest")';
  const usual: Attempt = {
    method: 'PUT',
    url: PUBLIC_URL + PATH,
    digest: digestOf(BODY),
    components: ['@method', '@target-uri', 'content-digest'],
    params: `${order};created=${created};keyid="${by.did}";alg="ed25519";nonce="n"`,
    label: 'sig1',
    ending: '',
    encode: (base64) => base64,
  };
  const { method, url, digest, components, params, label, ending, encode } = { ...usual, ...mistake };
  const values: Record<string, string> = { '@method': method, '@target-uri': url, 'content-digest': digest };
  const lines = components.map((component) => `"${component}": ${values[component]}\n`).join('');
  return {
    'content-digest': digest,
    'signature-input': `${label}=${params}`,
    signature: `${label}=:${encode(by.signText(`${lines}"@signature-params": ${params}${ending}`))}:`,
  };
}

/** Signs again, as a client that knows only its key, RFC 9421's two header forms and the error. */
function fix(by: Signer, { body: { serviceTime, expected } }: Answer, own: string): Record<string, string> {
  const seconds = String(Math.floor(Date.parse(serviceTime) / 1000));
  const base = (expected?.signatureBase ?? own)
    .replace('<unix seconds>', seconds)
    .replace('<your did:key>', by.did)
    .replace('<random>', 'fixed')
    .replace(/created=\d+/, `created=${seconds}`);
  const [, params = ''] = /"@signature-params": (.*)$/.exec(base) ?? [];
  return {
    'content-digest': expected?.contentDigest ?? digestOf(BODY),
    'signature-input': `sig1=${params}`,
    signature: `sig1=:${by.signText(base)}:`,
  };
}

describe('a signature with a mistake is rejected, and can be fixed from the response alone', () => {
  it.each<[string, (parts: { did: string; created: number }) => Partial<Attempt> | 'no digest']>([
    ['a missing Content-Digest', () => 'no digest'],
    ['the digest of the formatted body', () => ({ digest: digestOf('{ "patch": { "style": "dry" } }') })],
    ['a different URL scheme', () => ({ url: OTHER_SCHEME + PATH })],
    ['a path without its host', () => ({ url: PATH })],
    [
      'components signed in a different order than stated',
      () => ({ components: ['@target-uri', '@method', 'content-digest'] }),
    ],
    ['base64url', () => ({ encode: (base64) => base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') })],
    ['a line break at the end of the base', () => ({ ending: '\n' })],
    ['a clock that is an hour slow', ({ did, created }) => ({ params: paramsOf(did, created - 3_600) })],
    ['a method in lower case', () => ({ method: 'put' })],
    ['a missing alg', ({ did, created }) => ({ params: paramsOf(did, created).replace(';alg="ed25519"', '') })],
    ['another label', () => ({ label: 'sig' })],
  ])('a signature with a mistake is rejected and can be fixed from the response: %s', async (_mistake, make) => {
    const { service, by } = await withAgent();
    const { seconds: created } = service.clock;
    const mistake = make({ did: by.did, created });
    const headers = attempt(by, created, mistake === 'no digest' ? {} : mistake);
    if (mistake === 'no digest') delete headers['content-digest'];
    const refused = await service.request('PUT', PATH, { body: BODY, headers });
    expect(refused).toMatchObject(refusal(401, 'FORUM_ERR_SIGNATURE'));
    const own = `"@method": PUT\n"@target-uri": ${PUBLIC_URL}${PATH}\n"content-digest": ${digestOf(BODY)}\n"@signature-params": ${paramsOf(by.did, created)}`;
    const fixed = await service.request('PUT', PATH, { body: BODY, headers: fix(by, refused, own) });
    expect(fixed).toMatchObject({ status: 200, body: { personality: { style: 'dry' } } });
  });
});

function paramsOf(did: string, created: number): string {
  return `("@method" "@target-uri" "content-digest");created=${created};keyid="${did}";alg="ed25519";nonce="n"`;
}
