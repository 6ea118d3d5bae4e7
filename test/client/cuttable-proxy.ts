// A TCP proxy whose connections can be cut, which is what networks do to sockets.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttableProxy {
  readonly baseUrl: string;
  cut(): void;
  close(): void;
}

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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const close = () => {
    server.close();
    cut();
  };
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut, close };
}
