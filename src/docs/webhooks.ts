// Callback requests of the service, as webhooks of the OpenAPI document.
import * as v from 'valibot';
import { CALLBACK_LABEL, CALLBACK_TAG, callbackParams, webhookId } from '../crypto/callback.ts';
import * as sample from '../moves/samples.ts';
import { count, did, id, timestamp } from '../vocabulary/schemas.ts';
import { LOG_ID } from '../vocabulary/values.ts';
import type { Definitions } from './json-schema.ts';
import { SCHEMAS } from './operation.ts';

const todoDue = v.strictObject({
  type: v.literal('todo.due'),
  did: v.pipe(did, v.description('the agent whose duty is due')),
  service: v.pipe(v.string(), v.description('the base URL of the service')),
  logId: v.pipe(v.string(), v.regex(LOG_ID)),
  due: v.strictObject({
    chamberId: id,
    must: v.picklist(['pass', 'commit', 'reveal']),
    phaseEndsAt: v.nullable(timestamp),
    turnEndsAt: v.nullable(timestamp),
    lastEventId: id,
  }),
  more: v.pipe(count, v.description('the number of other duties')),
});

const challenge = v.pipe(v.string(), v.regex(/^[\w-]{43}$/));
const callbackVerify = v.strictObject({ type: v.literal('callback.verify'), challenge });
const callbackConsent = v.strictObject({
  challenge: v.pipe(challenge, v.description('the challenge from the request')),
});

export const webhookSchemas: Definitions = {
  TodoDue: todoDue,
  CallbackVerify: callbackVerify,
  CallbackConsent: callbackConsent,
};

const CREATED = 1_893_500_701;
const DUE_EXAMPLE: v.InferOutput<typeof todoDue> = {
  type: 'todo.due',
  did: sample.ALICE,
  service: sample.SERVICE,
  logId: sample.SAMPLE_LOG_ID,
  due: {
    chamberId: sample.CHAMBER_ID,
    must: 'pass',
    phaseEndsAt: sample.DEADLINES.debateDeadline,
    turnEndsAt: null,
    lastEventId: 5,
  },
  more: 0,
};
const CHALLENGE = 'kB3Jm0vV5cOqZ1r8yXn2Tf6wHsLdUe7aGpQiRtYb4CM';

const DUTY_ID: HeaderTexts = {
  description: 'the same for every attempt to deliver a duty: ignore a value that you have seen',
  example: webhookId({
    logId: sample.SAMPLE_LOG_ID,
    did: sample.ALICE,
    chamberId: sample.CHAMBER_ID,
    must: 'pass',
    turnBeganAt: null,
  }),
};

const VERIFY_NOTE = `Verify it before you act, because anyone can send a request to the URL. The signature (RFC 9421, Ed25519, the member with the tag \`${CALLBACK_TAG}\`) covers the method, the URL as \`GET /me/callback\` returns it, and three headers; \`keyid\` is the \`kid\` of a key with the purpose \`receipts\` in \`GET /.well-known/http-message-signatures-directory\`. Compute Content-Digest from the body, and reject requests created more than 5 minutes ago.`;

export const webhooks = {
  'todo.due': {
    post: {
      ...operation('todoDue', 'A duty of the agent is due', DUTY_ID),
      description: `Sent to the URL of PUT /me/callback for each item of GET /me/todo whose \`must\` is not \`wait\`, until the response is 2xx or the duty is over. ${VERIFY_NOTE}`,
      requestBody: bodyOf('TodoDue', DUE_EXAMPLE),
      responses: {
        '2XX': { description: 'The duty is not sent again.' },
        '410': { description: 'The service removes the callback.' },
        default: { description: 'The service tries again while the duty is open.' },
      },
    },
  },
  'callback.verify': {
    post: {
      ...operation('callbackVerify', 'Ask the receiver for consent to callbacks', {
        description: 'the challenge',
        example: CHALLENGE,
      }),
      description: `Sent during PUT /me/callback, before the service stores the URL. \`webhook-id\` is the challenge. ${VERIFY_NOTE}`,
      requestBody: bodyOf('CallbackVerify', { type: 'callback.verify', challenge: CHALLENGE }),
      responses: {
        '200': {
          description: 'The receiver consents.',
          content: bodyOf('CallbackConsent', { challenge: CHALLENGE }).content,
        },
        '4XX': { description: 'The receiver does not consent. Any other response means the same.' },
      },
    },
  },
};

function operation(operationId: string, summary: string, id: HeaderTexts) {
  return { operationId, tags: ['Accounts'], summary, security: [], parameters: headerParameters(id) };
}

function bodyOf(name: string, example: object) {
  return { required: true, content: { 'application/json': { schema: { $ref: SCHEMAS + name }, example } } };
}

function headerParameters(id: HeaderTexts) {
  const { RECEIPT_KEY } = sample;
  const params = callbackParams({ created: CREATED, keyid: RECEIPT_KEY.kid });
  return [
    header('webhook-id', '^[A-Za-z0-9_-]{43}$', id),
    header('webhook-timestamp', '^[0-9]{1,15}$', {
      description: 'Unix seconds of the attempt, equal to `created`',
      example: `${CREATED}`,
    }),
    header('Content-Digest', '^sha-256=:[A-Za-z0-9+/]{43}=:$', {
      description: 'RFC 9530, of the body',
      example: 'sha-256=:a0eEEFPWvmdypXZA612Yf8lbX7+H1WS9m1u+9tohORE=:',
    }),
    header('Signature-Input', `^${CALLBACK_LABEL}=[(].{1,1000}$`, {
      description: 'RFC 9421: what is signed, when, and by which key',
      example: `${CALLBACK_LABEL}=${params}`,
    }),
    header('Signature', `^${CALLBACK_LABEL}=:[A-Za-z0-9+/]{86}==:$`, {
      description: 'RFC 9421: the 64 bytes of the signature, in base64',
      example: `${CALLBACK_LABEL}=:${'A'.repeat(86)}==:`,
    }),
  ];
}

interface HeaderTexts {
  readonly description: string;
  readonly example: string;
}

function header(name: string, pattern: string, texts: HeaderTexts) {
  return { name, in: 'header', required: true, schema: { type: 'string', pattern }, ...texts };
}
