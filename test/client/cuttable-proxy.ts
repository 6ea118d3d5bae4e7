// A TCP proxy that can cut its connections, like an unreliable network.
import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../kit/serve.ts';
import { atEnd } from '../kit/temporary.ts';

export interface CuttableProxy {
  readonly baseUrl: string;
  cut(): void;
  /** Connections are cut, and new ones are reset, until `accept`. */
  refuse(): void;
  accept(): void;
  /** Open connections stay open but pass no more bytes. */
  forget(): void;
}

/** Opens a proxy that is closed at the end of the test. */
export async function openProxy(target: string): Promise<CuttableProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const pairs = new Set<readonly [near: Socket, far: Socket]>();
  let isRefusing = false;
  const server = createServer((near) => {
    if (isRefusing) return void near.on('error', () => {}).resetAndDestroy();
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
    const pair = [near, far] as const;
    pairs.add(pair);
    near.once('close', () => pairs.delete(pair));
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const refuse = () => {
    isRefusing = true;
    cut();
  };
  const accept = () => {
    isRefusing = false;
  };
  const forget = () => {
    for (const [near, far] of pairs) {
      near.unpipe(far);
      far.unpipe(near);
      far.destroy();
      near.resume();
    }
  };
  atEnd(() => {
    server.close();
    cut();
  });
  return { baseUrl: await listen(server), cut, refuse, accept, forget };
}
