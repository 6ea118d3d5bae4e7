// A TCP proxy whose connections can be cut, which is what networks do to sockets.
import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../kit/serve.ts';
import { atEnd } from '../kit/temporary.ts';

export interface CuttableProxy {
  readonly baseUrl: string;
  cut(): void;
}

/** Ends with the test. */
export async function openProxy(target: string): Promise<CuttableProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  atEnd(() => {
    server.close();
    cut();
  });
  return { baseUrl: await listen(server), cut };
}
