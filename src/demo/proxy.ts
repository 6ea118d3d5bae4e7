// A load balancer in front of several nodes. Requests for one chamber go to one node, all others round-robin, and the proxy removes a node
// that does not respond. A signed request that reaches two nodes is still executed only once.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { detach } from '../process/detach.ts';

export async function openProxy() {
  /** The local ports of the nodes. The proxy removes nodes that do not respond. */
  const ports: number[] = [];
  let roundRobin = 0;
  const pick = (path = '', isStream = false): number | undefined => {
    const [, chamber] = /^\/chambers\/(\d+)/.exec(path) ?? [];
    return ports[(chamber === undefined || isStream ? roundRobin++ : Number(chamber)) % ports.length];
  };
  const server = createServer((incoming, response) =>
    // The client disconnected before sending its whole request body.
    detach(forward(incoming, response), () => response.destroy()),
  );
  server.on('upgrade', tunnel);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, ports, close };

  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const attempt = (): void => {
      const { method, url: path, headers } = incoming;
      const chosen = pick(path);
      if (chosen === undefined) {
        response.writeHead(502).end();
        return;
      }
      const outgoing = request({ host: '127.0.0.1', port: chosen, method, path, headers }, (upstream) => {
        response.writeHead(upstream.statusCode ?? 502, upstream.headers);
        upstream.pipe(response);
        upstream.once('error', () => response.destroy());
      });
      outgoing.once('error', () => {
        removeNode(chosen);
        if (!response.headersSent) attempt();
      });
      outgoing.end(body);
    };
    attempt();
  }

  /** Tunnels a WebSocket. If the node dies, the consumer reconnects to another node. */
  function tunnel({ method, url: path, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
    const chosen = pick(path, true);
    const node = connect(chosen ?? 0, '127.0.0.1', () => {
      const lines = rawHeaders.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`));
      node.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
      node.write(head);
      node.pipe(socket).pipe(node);
    });
    node.on('error', () => {
      removeNode(chosen);
      socket.destroy();
    });
    node.once('close', () => socket.destroy());
    socket.on('error', () => node.destroy());
    socket.once('close', () => node.destroy());
  }

  function removeNode(port: number | undefined): void {
    const index = ports.findIndex((each) => each === port);
    if (index >= 0) ports.splice(index, 1);
  }
}
