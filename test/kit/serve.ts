// Servers of tests, on a free port of 127.0.0.1.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { atEnd } from './temporary.ts';

/** The base URL of the server, which listens once this resolves. */
export async function listen(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves until the test ends; returns the base URL. */
export async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  atEnd(() => void server.close().closeAllConnections());
  return await listen(server);
}
