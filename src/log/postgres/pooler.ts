// Recognizes a pooler that gives each transaction of a connection another session, as PgBouncer does in transaction mode. Settings,
// prepared statements and LISTEN would be those of a stranger there: moves could be lost after their response, and nodes would not
// wake each other.
import type { Client } from 'pg';
import { detach } from '../../process/detach.ts';
import { backendOf } from './session.ts';

/** A pooler may hand out its sessions in turn, and other programs use them meanwhile. */
const ROUNDS = 8;

/**
 * Throws an Error of one line unless a connection keeps its session. A server announces the process of the session to the client; that of
 * a pooler is made up. Then two connections are compared, which must have one process each.
 */
export async function requireOwnSession(open: () => Promise<Client>): Promise<void> {
  const clients: Client[] = [];
  try {
    const first = await openInto(clients, open);
    if ((await backendOf(first)) === (first as { readonly processID?: number }).processID) return;
    const second = await openInto(clients, open);
    const [own, other] = [await backendOf(first), await backendOf(second)];
    for (let round = 0; round < ROUNDS; round++) {
      // The second one asks twice as often, so that sessions handed out in turn meet the other connection.
      const seen = [await backendOf(second), await backendOf(first), await backendOf(second)];
      if (own === other || seen.join() !== [other, own, other].join()) throw new Error(SHARED);
    }
  } finally {
    // Their end is not waited for: the server may be silent.
    for (const client of clients) detach(client.end(), () => {});
  }
}

async function openInto(clients: Client[], open: () => Promise<Client>): Promise<Client> {
  const client = await open();
  clients.push(client);
  return client;
}

const SHARED =
  'a pooler shares the server’s sessions among connections, as PgBouncer does in transaction mode: use its session mode or the server’s own port';
