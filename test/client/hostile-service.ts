// A proxy in front of a real service that responds in its place when a test says so: a service that lies, or never ends a response.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { listen } from '../kit/serve.ts';

export interface HostileService {
  readonly url: string;
  /** The method, path and body of every request so far. */
  readonly received: string[];
  /** Returns the body to respond with in place of the real one. */
  alter: (path: string, body: string) => string;
  /** If this returns true, it has responded itself, and the real service gets no request. */
  answer: (request: IncomingMessage, response: ServerResponse) => boolean;
  close(): void;
}

export async function openHostileService(real: string): Promise<HostileService> {
  const server = createServer(async (request, response) => {
    const { method, url = '/', headers } = request;
    const body = await buffer(request);
    hostile.received.push(`${method} ${url} ${body}`);
    if (hostile.answer(request, response)) return;
    // The request has the Host of the hostile service, because the signatures cover it.
    const forwarding = send(real + url, { method, headers: { ...headers, 'accept-encoding': 'identity' } }).end(body);
    response.once('close', () => forwarding.destroy());
    try {
      const [answer] = (await once(forwarding, 'response')) as [IncomingMessage];
      const { 'log-id': logId, 'content-type': type = 'application/json' } = answer.headers;
      const kept = { 'Content-Type': type, ...(logId !== undefined && { 'Log-Id': logId }) };
      response.writeHead(answer.statusCode ?? 500, kept);
      // Each event is one chunk.
      if (type.startsWith('text/event-stream'))
        for await (const event of answer) response.write(hostile.alter(url, `${event}`));
      else response.write(hostile.alter(url, await text(answer)));
      response.end();
    } catch {
      response.destroy();
    }
  });
  // The proxy states its own time in bodies.
  server.on('request', (_, response) => {
    response.sendDate = false;
  });
  const hostile: HostileService = {
    url: await listen(server),
    received: [],
    alter: (_path, body) => body,
    answer: () => false,
    close: () => void server.close().closeAllConnections(),
  };
  return hostile;
}
