// The webhooks of the OpenAPI document describe the requests that the service sends to callbacks.
import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/docs/openapi.ts';
import { webhooks } from '../../src/docs/webhooks.ts';
import { httpRoutes } from '../../src/http/app.ts';
import { streamEndpoints } from '../../src/stream/endpoints.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { type Delivery, openReceiver } from '../kit/receiver.ts';
import { PUBLIC_URL, withAgent } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';
import { newAjv } from './described.ts';
import { LIMITS } from './limits.ts';

const endpoints = [...httpRoutes, ...streamEndpoints];
const document = openApiDocument({ version: '1.2.3', baseUrls: [PUBLIC_URL], limits: LIMITS, endpoints });
const ajv = newAjv();
ajv.addSchema({ $id: 'openapi', components: document.components });

type Webhook = keyof typeof webhooks;

function problemsOf(type: Webhook, { headers, body }: Pick<Delivery, 'body'> & { readonly headers: object }) {
  const { parameters, requestBody } = document.webhooks[type].post;
  const { $ref } = requestBody.content['application/json'].schema;
  const sent = new Map<string, unknown>(Object.entries(headers));
  const wrong = parameters.filter(({ name, schema }) => !ajv.validate(schema, sent.get(name.toLowerCase())));
  const isValid = ajv.validate(`openapi${$ref}`, body);
  return [...wrong.map(({ name }) => name), ...(isValid ? [] : [ajv.errorsText()])];
}

test('a challenge and a delivery fit their webhooks, with their headers', async () => {
  const { service, by } = await withAgent();
  service.composed.calling.start(PUBLIC_URL);
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'PROPOSAL');
  const receiver = await openReceiver();
  await service.must('PUT', '/me/callback', { by, body: { url: receiver.url } });
  await eventually(() => expect(receiver.deliveries.length).toBe(1));
  const [challenge, delivery] = [receiver.challenges[0] as Delivery, receiver.deliveries[0] as Delivery];
  expect(problemsOf('callback.verify', challenge)).toEqual([]);
  expect(problemsOf('todo.due', delivery)).toEqual([]);
  expect(problemsOf('todo.due', challenge)).not.toEqual([]);
});

test.each(Object.keys(webhooks) as Webhook[])('the examples of the webhook %s fit its schemas', (type) => {
  const { parameters, requestBody } = document.webhooks[type].post;
  const headers = Object.fromEntries(parameters.map(({ name, example }) => [name.toLowerCase(), example]));
  const body = requestBody.content['application/json'].example;
  expect(problemsOf(type, { headers, body })).toEqual([]);
});
