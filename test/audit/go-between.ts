// A proxy in front of a real service that changes its responses.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface GoBetween {
  readonly url: string;
  /** Returns the response text for the requested path. */
  lie: (path: string, text: string) => string;
  /** Resolves when the request may be forwarded. */
  wait: (path: string) => Promise<void>;
  /** Returns the response status for the requested path. */
  refuseOf: (path: string) => number | undefined;
  /** The statuses of the next responses, with Retry-After: 0. */
  refuse: number[];
  close(): Promise<void>;
}

/** `now` is the service's clock, shown in the Date header. */
export async function openGoBetween(serviceUrl: string, now: () => number): Promise<GoBetween> {
  const server = createServer(async (request, response) => {
    const status = between.refuse.shift() ?? between.refuseOf(request.url ?? '');
    if (status !== undefined) {
      response.writeHead(status, { 'Retry-After': '0' }).end('{"detail":"busy"}');
      return;
    }
    const path = request.url ?? '';
    await between.wait(path);
    const answer = await fetch(serviceUrl + path);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const text = bytes.toString();
    const told = between.lie(path, text);
    const logId = answer.headers.get('log-id');
    const headers = { Date: new Date(now()).toUTCString(), ...(logId === null ? {} : { 'Log-Id': logId }) };
    // Tiles are binary.
    response.writeHead(answer.status, headers).end(told === text ? bytes : told);
  });
  const between: GoBetween = {
    url: await listen(server),
    lie: (_path, text) => text,
    wait: async () => {},
    refuseOf: () => undefined,
    refuse: [],
    close: () => close(server),
  };
  return between;
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
