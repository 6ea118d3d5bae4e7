// A receiver of callbacks on a real socket, which consents to challenges and keeps the deliveries.
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { serve } from './serve.ts';

export interface Delivery {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read its members as they are sent
  readonly body: any;
}

export interface Receiver {
  readonly url: string;
  readonly challenges: Delivery[];
  readonly deliveries: Delivery[];
  /** The statuses of the next responses to deliveries. */
  status: number;
  /** Responds in place of the receiver, if set. */
  respond: ((delivery: Delivery, response: ServerResponse) => void) | undefined;
}

export async function openReceiver(): Promise<Receiver> {
  const receiver: { -readonly [Key in keyof Receiver]: Receiver[Key] } = {
    url: '',
    challenges: [],
    deliveries: [],
    status: 204,
    respond: undefined,
  };
  const url = await serve(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const delivery = { method: request.method ?? '', headers: request.headers, text, body: JSON.parse(text) };
    const isChallenge = delivery.body.type === 'callback.verify';
    (isChallenge ? receiver.challenges : receiver.deliveries).push(delivery);
    if (receiver.respond !== undefined) receiver.respond(delivery, response);
    else if (isChallenge) response.end(JSON.stringify({ challenge: delivery.body.challenge }));
    else response.writeHead(receiver.status).end();
  });
  receiver.url = `${url}/wake?of=agent`;
  return receiver;
}
