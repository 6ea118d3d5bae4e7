// A proxy that cuts connections repeatedly, so that readers have to resume.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly url: string;
  /** Returns the number of connections that were cut. */
  readonly cuts: () => number;
  readonly close: () => void;
}

/** Passes that many bytes of a response, then cuts the connection. */
export async function openCuttingProxy(target: string, bytes: number): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let cuts = 0;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    let left = bytes;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.on('data', (chunk) => {
      const part = chunk.subarray(0, left);
      left -= part.length;
      near.write(part, () => {
        if (left > 0 || near.destroyed) return;
        cuts++;
        near.resetAndDestroy();
      });
    });
    far.on('end', () => near.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts, close };
}
