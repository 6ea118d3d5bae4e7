// HTTP over connections that the caller owns and closes.
import { type Agent, request } from 'node:http';
import { Readable } from 'node:stream';
import type { Fetch } from '../../src/client/index.ts';

/** `fetch` on the agent's connections, without the Date header, which Node sets from the machine's clock and not the service's. */
export function fetchOver(agent: Agent): Fetch {
  return (url, { method = 'GET', headers = {}, body, signal }) =>
    new Promise((resolve, reject) => {
      const options = { agent, method, headers: Object.fromEntries(new Headers(headers)) };
      const outgoing = request(url, { ...options, ...(signal && { signal }) }, (incoming) => {
        const { statusCode: status = 0, headers: received } = incoming;
        const kept = Object.entries(received).filter(([name]) => name !== 'date') as [string, string][];
        incoming.on('error', () => {});
        if (status !== 204)
          return resolve(new Response(Readable.toWeb(incoming) as ReadableStream, { status, headers: kept }));
        incoming.resume();
        resolve(new Response(null, { status, headers: kept }));
      });
      outgoing.once('error', reject);
      outgoing.end(body);
    });
}
