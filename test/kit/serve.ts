// Test servers on a free port of 127.0.0.1.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { atEnd } from './temporary.ts';

/** Makes the server listen, and returns its base URL. */
export async function listen(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves until the end of the test, and returns the base URL. */
export async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  atEnd(() => void server.close().closeAllConnections());
  return await listen(server);
}
