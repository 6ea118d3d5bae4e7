// A TCP proxy that reads PostgreSQL's messages and cuts connections between two messages of an append: first after one message,
// next after two, and so on, until each gap of an exchange was cut.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface MessageProxy {
  /** The URL of the database, through the proxy. */
  readonly url: string;
  /** The number of appends that were cut, by the number of forwarded messages. */
  readonly cuts: readonly number[];
  readonly begin: () => void;
  readonly end: () => void;
  readonly close: () => void;
}

export async function openMessageProxy(databaseUrl: string, everyMillis: number): Promise<MessageProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const cuts: number[] = [];
  let nextCut = 0;
  let dueAt = Number.POSITIVE_INFINITY;

  /** The number of messages of the new append to forward. */
  const limit = () => {
    if (performance.now() < dueAt) return Number.POSITIVE_INFINITY;
    dueAt = performance.now() + everyMillis;
    return nextCut++;
  };

  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    let isCut = false;
    let left: number | undefined;
    let passed = 0;
    const cut = () => {
      isCut = true;
      cuts[passed] = (cuts[passed] ?? 0) + 1;
      // Forwarded messages still arrive.
      near.destroySoon();
      far.destroySoon();
    };
    const forward = (to: Socket) => (message: Buffer) => {
      if (isCut) return;
      if (to === far && left === undefined && beginsAppend(message)) [left, passed] = [limit(), 0];
      if (left === passed) return cut();
      to.write(message);
      if (left === undefined) return;
      passed++;
      if (to !== near || message[0] !== READY_FOR_QUERY) return;
      if (left === passed) return cut();
      // The append had fewer messages than the limit, so start over.
      if (left !== Number.POSITIVE_INFINITY) nextCut = 0;
      left = undefined;
    };
    near.on('data', split(true, forward(far)));
    far.on('data', split(false, forward(near)));
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true).on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroySoon();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const begin = () => {
    dueAt = performance.now();
  };
  const end = () => {
    dueAt = Number.POSITIVE_INFINITY;
  };
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: url.href, cuts, begin, end, close };
}

const [PARSE, BIND, READY_FOR_QUERY] = ['P', 'B', 'Z'].map((type) => type.charCodeAt(0));
const HEAD_BYTES = 5;

/** Returns whether the message's statement name begins with `append`; in a Bind, an empty portal name precedes it. */
function beginsAppend(message: Buffer): boolean {
  const [type] = message;
  if (type === PARSE) return message.toString('latin1', HEAD_BYTES, HEAD_BYTES + 6) === 'append';
  return type === BIND && message.toString('latin1', HEAD_BYTES, HEAD_BYTES + 7) === '\0append';
}

/** Calls `onMessage` with each complete message: a type byte, which a client's first message lacks, a length and the body. */
function split(isFirstUntyped: boolean, onMessage: (message: Buffer) => void): (data: Buffer) => void {
  let typeBytes = isFirstUntyped ? 0 : 1;
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    while (rest.length >= typeBytes + 4) {
      const bytes = typeBytes + rest.readInt32BE(typeBytes);
      if (rest.length < bytes) return;
      onMessage(rest.subarray(0, bytes));
      rest = rest.subarray(bytes);
      typeBytes = 1;
    }
  };
}
