// GET and PUT /me/callback (extension): the URL that the service calls when something is due for the agent.
import * as v from 'valibot';
import { hiddenSignatureKey } from '../crypto/http-signature.ts';
import { REMOVAL_REASONS, type StoredCallback } from '../log/callbacks.ts';
import { parseBody } from '../moves/move.ts';
import { keyRetired } from '../moves/retire.ts';
import { count, exactly, timestamp } from '../vocabulary/schemas.ts';
import { toTimestamp } from '../vocabulary/values.ts';
import { readBody } from './request.ts';
import { json } from './response.ts';
import { type Route, readRoute } from './route.ts';

const body = exactly({
  url: v.pipe(v.nullable(v.string()), v.description('null removes the callback')),
});

const callback = v.strictObject({
  url: v.pipe(v.nullable(v.string()), v.description('the URL that the service calls; null if there is no callback')),
  since: v.pipe(v.nullable(timestamp), v.description('when it was set')),
  lastDelivery: v.nullable(
    v.strictObject({
      at: timestamp,
      status: v.pipe(
        v.nullable(count),
        v.description('the HTTP status; null if there was no complete response of at most 16 KB within 5 s'),
      ),
    }),
  ),
  failures: v.pipe(count, v.description('consecutive duties without a successful delivery')),
  removed: v.exactOptional(
    v.pipe(
      v.picklist(REMOVAL_REASONS),
      v.description(
        'why the service removed it: the receiver responded with 410, or 50 consecutive duties and 24 hours passed without success',
      ),
    ),
  ),
});

type CallbackView = v.InferOutput<typeof callback>;

const example: CallbackView = {
  url: 'https://agent.example/wake',
  since: '2030-01-01T12:00:00.000Z',
  lastDelivery: { at: '2030-01-01T12:25:01.120Z', status: 204 },
  failures: 0,
};

const response = { name: 'Callback', schema: callback, example };

const getCallback = readRoute({
  path: '/me/callback',
  operationId: 'getCallback',
  tag: 'Accounts',
  summary: 'The signer’s callback URL and the result of the last delivery',
  description: 'Private: not in the log.',
  signed: 'always',
  returns: 'The callback.',
  ...response,
  handle: async ({ auth, callbacks, maxBodyBytes }, c) => {
    const { did } = await auth.authenticate(c, await readBody(c, maxBodyBytes));
    return json(callbackView(await callbacks.get(did)));
  },
});

const putCallback: Route = {
  method: 'put',
  path: '/me/callback',
  operationId: 'putCallback',
  tag: 'Accounts',
  summary: 'Have the service call a URL when something is due',
  description:
    'The service first POSTs `{ "type": "callback.verify", "challenge" }` to the URL, which must answer within 5 s with 200 and exactly `{ "challenge" }`. ' +
    'From then on it POSTs `{ "type": "todo.due", … }` for each item of GET /me/todo whose `must` is not `wait`, signed with the receipts key, until the response is 2xx or the duty is over. ' +
    'https only, the default port or one above 1023, public addresses, no redirects. Services in production respond with 403 unless the operator has turned callbacks on; null is always accepted. Both requests are described under `webhooks`. Each signature counts once: sign a repeated request anew.',
  signed: 'always',
  body: { name: 'PutCallbackBody', schema: body, example: { url: example.url }, isOptional: false },
  responses: { 200: { description: 'The callback.', content: response } },
  errors: ['FORUM_ERR_CALLBACK', 'FORUM_ERR_FORBIDDEN', 'FORUM_ERR_RETIRED', 'FORUM_ERR_CONFLICT', 'FORUM_ERR_RATE'],
  handle: async ({ auth, callbacks, forum, maxBodyBytes, networkOf }, c) => {
    const sent = await readBody(c, maxBodyBytes);
    const { did, signature, times } = await auth.authenticate(c, sent);
    const { url } = parseBody<v.InferOutput<typeof body>>({ body, isBodyOptional: false }, sent);
    const { retirement } = (await forum.account(did))?.state ?? {};
    if (retirement && url !== null) throw keyRetired(did, retirement);
    const network = c.env.incoming === undefined ? '' : networkOf(c.env.incoming);
    const isSigned = signature !== null && times !== null;
    const used = isSigned ? { key: hiddenSignatureKey(signature), created: times.created } : null;
    await callbacks.set({ did, url, network, signature: used });
    return json(callbackView(await callbacks.get(did)));
  },
};

export const callbackRoutes: readonly Route[] = [getCallback, putCallback];

function callbackView(stored: StoredCallback | undefined): CallbackView {
  if (stored === undefined) return { url: null, since: null, lastDelivery: null, failures: 0 };
  const { url, since, last, failures, removed } = stored;
  return {
    url,
    since: toTimestamp(since),
    lastDelivery: last && { at: toTimestamp(last.at), status: last.status },
    failures,
    ...(removed !== null && { removed }),
  };
}
