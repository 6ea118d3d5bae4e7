// How much of what was written to a connection has reached its peer. Only the kernel knows, and Linux tells it of every TCP
// connection; elsewhere what the kernel took has to do.
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'] as const;

/** The system is asked in a moment of its own: what is written meanwhile may count among what it tells, or not. */
export interface Delivered {
  readonly least: number;
  readonly most: number;
}

/** Bytes written to each socket that its peer has acknowledged, as far as the system tells. */
export async function deliveredBytes(
  sockets: readonly Socket[],
  readTables: () => Promise<string> = readConnections,
): Promise<readonly Delivered[]> {
  const before = sockets.map(sentBytes);
  const unacknowledged = parseUnacknowledged(await readTables());
  return sockets.map((socket, index) => {
    const queue = unacknowledged.get(`${socket.localPort} ${socket.remotePort}`) ?? 0;
    return { least: (before[index] as number) - queue, most: sentBytes(socket) - queue };
  });
}

/** Handed to the system whole. */
function sentBytes({ bytesWritten, writableLength }: Socket): number {
  return bytesWritten - writableLength;
}

async function readConnections(): Promise<string> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, 'latin1').catch(() => '')));
  return tables.join('');
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
