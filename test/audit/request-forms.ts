// Valid and invalid forms of a signed request, on which service, auditor and vectors must agree.
import { digestOf, type Signer } from '../kit/signer.ts';

export interface RequestForm {
  /** The path, relative to the service's address. */
  readonly path?: string;
  readonly body?: string;
  readonly digest?: (body: string) => string;
  /** Returns the text signed as "@signature-params". */
  readonly params?: (created: number, did: string) => string;
  /** Returns both header fields for the signed parameters and the signature in base64. */
  readonly fields?: (params: string, base64: string) => { readonly signatureInput: string; readonly signature: string };
}

/** As recorded in a line. */
export interface FormedRequest {
  readonly body: string;
  readonly contentDigest: string;
  readonly signatureInput: string;
  readonly signature: string;
}

const COMPONENTS = '("@method" "@target-uri" "content-digest")';
const usual = (created: number, did: string) => `${COMPONENTS};created=${created};keyid="${did}";alg="ed25519"`;
const own = (params: string, base64: string) => ({ signatureInput: `sig1=${params}`, signature: `sig1=:${base64}:` });

/** Returns a POST of `path`, signed in that form. */
export function inForm(form: RequestForm, by: Signer, { url = '', body = '', created = 0 }): FormedRequest {
  const { digest = digestOf, params = usual, fields = own } = form;
  const input = params(created, by.did);
  const contentDigest = digest(body);
  const values = new Map([
    ['@method', 'POST'],
    ['@target-uri', url],
    ['content-digest', contentDigest],
  ]);
  const [, covered = ''] = /^\(([^)]*)\)/.exec(input) ?? [];
  const lines = covered.split(/[ \t]/).map((item) => `${item}: ${values.get(/"([^"]*)"/.exec(item)?.[1] ?? '') ?? ''}`);
  const base64 = by.signText([...lines, `"@signature-params": ${input}`].join('\n'));
  return { body, contentDigest, ...fields(input, base64) };
}

const OTHER_DIGEST = `sha-512=:${'A'.repeat(86)}==:`;
const FOREIGN_SIGNATURE = `:${'A'.repeat(86)}==:`;

/** Returns both fields with additional labels. */
function withLabels(labels: readonly string[], input = '("@method");created=1;keyid="proxy"') {
  return (params: string, base64: string) => ({
    signatureInput: [...labels.map((label) => `${label}=${input}`), `sig1=${params}`].join(', '),
    signature: [`sig1=:${base64}:`, ...labels.map((label) => `${label}=${FOREIGN_SIGNATURE}`)].join(', '),
  });
}

/** Returns the usual form with one change. */
const changed = (from: string | RegExp, to: string) => (created: number, did: string) =>
  usual(created, did).replace(from, to);
const padded = (covered: string, params = '') => ({
  fields: (signed: string, base64: string) => {
    const input = signed.replace(COMPONENTS, covered).replaceAll(';', `;${params}`);
    return { signatureInput: ` sig1=${input}`, signature: ` sig1=:${base64}: ` };
  },
});

/** Forms that earlier releases accepted and the service now rejects. */
export const EARLIER: ReadonlySet<string> = new Set(['a query', 'a nonce with escapes, and an expiry']);

export const ACCEPTED: readonly (readonly [title: string, form: RequestForm])[] = [
  ['the usual form', {}],
  ['a query', { path: '/chambers/1/debate?x=/chambers/2/pass' }],
  ['a percent-encoded id', { path: '/chambers/%31/debate' }],
  ['components in a different order', { params: changed(COMPONENTS, '("content-digest" "@target-uri" "@method")') }],
  [
    'parameters in a different order',
    { params: (created, did) => `${COMPONENTS};alg="ed25519";keyid="${did}";created=${created}` },
  ],
  [
    'a nonce with escapes, and an expiry',
    { params: (created, did) => `${usual(created, did)};nonce="\\"\\\\";expires=${created + 9}` },
  ],
  ['spaces wherever they are allowed', padded('( "@method"  "@target-uri" "content-digest"  )', ' ')],
  ['an additional digest by another algorithm', { digest: (body) => `${OTHER_DIGEST}, ${digestOf(body)}` }],
  ['tabs around a digest', { digest: (body) => `${OTHER_DIGEST}\t,\t${digestOf(body)}` }],
  ['four additional labels', { fields: withLabels(['proxy', 'a.b', '*c', 'd-1']) }],
  [
    'a body with white space and members in any order',
    { body: ' {\n\t"refinement" : {"b":1,"a":[2.50, 1e2]}, "comment":"\\u00e9 \\/ \ud83c\udf31"}\r\n' },
  ],
  [
    'member names that objects inherit',
    { body: '{"comment":"x","refinement":{"__proto__":{"a":1},"constructor":null,"toString":[]}}' },
  ],
  ['text with edge cases of Unicode', { body: JSON.stringify({ comment: '\u0000\u2028\u{10ffff}\ufeff' }) }],
];

/** Sets one of the two spare bits in the last base64 digit of 32 bytes, which must be 0. */
function withSpareBits(digest: string): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  return digest.replace(/(.)=:$/, (_, last: string) => `${digits[digits.indexOf(last) + 1]}=:`);
}

export const REFUSED: readonly (readonly [title: string, form: RequestForm])[] = [
  ['a duplicate digest', { digest: (body) => `${digestOf(body)}, ${digestOf(body)}` }],
  ['only a digest by another algorithm', { digest: () => OTHER_DIGEST }],
  ['a digest without its padding', { digest: (body) => digestOf(body).replace('=:', ':') }],
  ['a digest in base64 that is not canonical', { digest: (body) => withSpareBits(digestOf(body)) }],
  ['a digest with a parameter', { digest: (body) => `${digestOf(body)};a=1` }],
  ['a duplicate component', { params: changed(')', ' "@method")') }],
  ['an additional component', { params: changed(')', ' "date")') }],
  ['a component with a parameter', { params: changed('"@method"', '"@method";req') }],
  ['a tab between components', { params: changed('" "', '"\t"') }],
  ['no creation time', { params: changed(/;created=\d+/, '') }],
  ['no algorithm', { params: changed(';alg="ed25519"', '') }],
  ['no keyid', { params: changed(/;keyid="[^"]*"/, '') }],
  ['a creation time as a string', { params: changed(/created=(\d+)/, 'created="$1"') }],
  ['a creation time with a leading zero', { params: changed('created=', 'created=0') }],
  ['a creation time as a decimal', { params: changed(/created=(\d+)/, 'created=$1.0') }],
  ['a duplicate creation time', { params: changed(/(;created=\d+)/, '$1$1') }],
  ['an expiry of 16 digits', { params: changed(/$/, `;expires=${'9'.repeat(16)}`) }],
  ['a nonce that is a number', { params: changed(/$/, ';nonce=1') }],
  ['an unknown parameter', { params: changed(/$/, ';tag="x"') }],
  ['five additional labels', { fields: withLabels(['a', 'b', 'c', 'd', 'e']) }],
  ['an additional label whose list is not closed', { fields: withLabels(['a'], '("@method"') }],
  [
    'additional labels of over 4,096 characters',
    { fields: withLabels(['a'], `("@method");keyid="${'k'.repeat(4_096)}"`) },
  ],
  [
    'a label in Signature-Input only',
    { fields: (params, base64) => ({ ...own(params, base64), signatureInput: `a=("@method"), sig1=${params}` }) },
  ],
  [
    'a duplicate label',
    { fields: (params, base64) => ({ ...own(params, base64), signature: `sig1=:${base64}:, sig1=:${base64}:` }) },
  ],
  ['a signature with a parameter', { fields: (params, base64) => own(params, `${base64}:;a=:`) }],
  ['a signature without its padding', { fields: (params, base64) => own(params, base64.replace('==', '')) }],
  ['a signature of 63 bytes', { fields: (params, base64) => own(params, `${base64.slice(0, 84)}`) }],
];
