// A proxy in front of a real service that changes its responses.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TamperingProxy {
  readonly url: string;
  /** Returns the response text for the requested path. */
  tamper: (path: string, text: string) => string;
  /** Resolves when the request may be forwarded. */
  wait: (path: string) => Promise<void>;
  /** Returns the response status for the requested path. */
  statusFor: (path: string) => number | undefined;
  /** The statuses of the next responses, with Retry-After: 0. */
  nextStatuses: number[];
  close(): Promise<void>;
}

/** Opens the proxy; `now` is the service's clock, shown in the Date header. */
export async function openTamperingProxy(serviceUrl: string, now: () => number): Promise<TamperingProxy> {
  const server = createServer(async (request, response) => {
    const status = proxy.nextStatuses.shift() ?? proxy.statusFor(request.url ?? '');
    if (status !== undefined) {
      response.writeHead(status, { 'Retry-After': '0' }).end('{"detail":"busy"}');
      return;
    }
    const path = request.url ?? '';
    await proxy.wait(path);
    const answer = await fetch(serviceUrl + path);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const text = bytes.toString();
    const tampered = proxy.tamper(path, text);
    const logId = answer.headers.get('log-id');
    const headers = { Date: new Date(now()).toUTCString(), ...(logId === null ? {} : { 'Log-Id': logId }) };
    // An unchanged response is passed on as bytes, because tiles are binary.
    response.writeHead(answer.status, headers).end(tampered === text ? bytes : tampered);
  });
  const proxy: TamperingProxy = {
    url: await listen(server),
    tamper: (_path, text) => text,
    wait: async () => {},
    statusFor: () => undefined,
    nextStatuses: [],
    close: () => close(server),
  };
  return proxy;
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
