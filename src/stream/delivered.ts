// How much of what was written to a connection has reached its peer. Only the kernel knows, and Linux tells it of every TCP
// connection; elsewhere what the kernel took has to do.
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'] as const;
/** One look serves all who ask within this time. */
const LOOK_MS = 1_000;

let lookedAt = Number.NEGATIVE_INFINITY;
let lastLook: Promise<ReadonlyMap<string, number>>;

/** Bytes written to the socket that its peer has acknowledged, as far as the system tells. */
export async function deliveredBytes(socket: Socket): Promise<number> {
  const now = performance.now();
  if (now - lookedAt > LOOK_MS) {
    lookedAt = now;
    lastLook = look();
  }
  const unacknowledged = (await lastLook).get(`${socket.localPort} ${socket.remotePort}`) ?? 0;
  return socket.bytesWritten - socket.writableLength - unacknowledged;
}

async function look(): Promise<ReadonlyMap<string, number>> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, 'latin1').catch(() => '')));
  return parseUnacknowledged(tables.join(''));
}

// sl, local address:port, remote address:port, state, tx_queue:rx_queue, all in hexadecimal (proc_net_tcp in Linux's documentation).
const CONNECTION = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/gm;

/** Bytes on their way by `localPort remotePort`; of several connections with the same ports the one that is best off. */
export function parseUnacknowledged(tables: string): ReadonlyMap<string, number> {
  const unacknowledged = new Map<string, number>();
  for (const [, local = '', remote = '', queue = ''] of tables.matchAll(CONNECTION)) {
    const ports = `${Number.parseInt(local, 16)} ${Number.parseInt(remote, 16)}`;
    const bytes = Number.parseInt(queue, 16);
    unacknowledged.set(ports, Math.min(bytes, unacknowledged.get(ports) ?? bytes));
  }
  return unacknowledged;
}
