// A proxy in front of an RPC that injects the faults of networks and providers.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** `lost`: the request reaches the node, but its response is dropped. */
export type Fault =
  | { readonly kind: 'hang' | 'reset' | 'lost' }
  | { readonly kind: 'status'; readonly status: number; readonly body: string }
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly message: string; readonly code?: number };

export interface FaultProxy {
  /** Contains a fake API key. */
  readonly url: string;
  /** Chooses the fault of each request; undefined forwards it. */
  fault: (method: string, params: readonly unknown[]) => Fault | undefined | Promise<Fault | undefined>;
  /** The methods of all requests. */
  readonly requests: string[];
  close(): void;
}

interface Request {
  readonly method: string;
  readonly id: number;
  readonly params: readonly unknown[];
}

/** The code that nodes use for most errors. */
const ANY_CODE = -32_000;

export const API_KEY = 'a-key-that-must-not-show-0123456789';

export async function openFaultProxy(target: string): Promise<FaultProxy> {
  const server = createServer((request, response) => {
    respondTo(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${port}/v2/${API_KEY}`,
    fault: () => undefined,
    requests: [],
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return proxy;

  async function respondTo(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const { method, id, params } = JSON.parse(body) as Request;
    proxy.requests.push(method);
    const fault = await proxy.fault(method, params);
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'reset') return void request.socket.destroy();
    if (fault?.kind === 'status') return void response.writeHead(fault.status).end(fault.body);
    const headers = { 'content-type': 'application/json' };
    const respond = (outcome: object) =>
      void response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
    if (fault?.kind === 'result') return respond({ result: fault.result });
    if (fault?.kind === 'error') {
      const { code = ANY_CODE, message } = fault;
      return respond({ error: { code, message } });
    }
    const forwarded = await (await fetch(target, { method: 'POST', headers, body })).text();
    if (fault?.kind === 'lost') return void request.socket.destroy();
    response.writeHead(200, headers).end(forwarded);
  }
}
