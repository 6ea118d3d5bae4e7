// The service's public keys, for verifying receipts and checkpoints (HTTP Message Signatures Directory,
// draft-meunier-webbotauth-httpsig-directory-00).
import * as v from 'valibot';
import { DIRECTORY_PATH } from '../crypto/key-directory.ts';
import { KEY_USES } from '../keys/service-keys.ts';
import * as sample from '../moves/samples.ts';
import { count } from '../vocabulary/schemas.ts';
import { json } from './response.ts';
import { getRoute } from './route.ts';

const MEDIA_TYPE = 'application/http-message-signatures-directory+json';
/** Caches may lack a new key for at most this long. */
const MAX_AGE_SECONDS = 300;

const seconds = (description: string) => v.pipe(count, v.description(description));

const schema = v.strictObject({
  keys: v.array(
    v.strictObject({
      kty: v.literal('OKP'),
      crv: v.literal('Ed25519'),
      x: v.pipe(v.string(), v.description('the public key in base64url')),
      kid: v.pipe(v.string(), v.description('JWK thumbprint (RFC 7638): the keyid of its signatures')),
      alg: v.literal('Ed25519'),
      use: v.literal('sig'),
      purpose: v.pipe(v.picklist(KEY_USES), v.description('what it signs')),
      nbf: seconds('Unix seconds: when the key begins to sign'),
      exp: v.exactOptional(seconds('Unix seconds: when the key stops signing')),
    }),
  ),
});

export const keyDirectoryRoute = getRoute({
  path: DIRECTORY_PATH,
  operationId: 'getKeys',
  tag: 'Service',
  summary: 'The keys that sign receipts and checkpoints',
  description:
    'Keys are added and never removed. Each chamber records the thumbprints of the two keys in force at its creation, ' +
    'so that its root on the chain covers them.',
  returns: 'A JWK set.',
  content: { type: MEDIA_TYPE, name: 'KeyDirectory', schema, example: { keys: [sample.RECEIPT_KEY] } },
  handle: ({ keys }) =>
    json(keys.directory(), { 'Content-Type': MEDIA_TYPE, 'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}` }),
});
