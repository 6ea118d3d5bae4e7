// A transaction for programs that read or write a whole log: without limits of time, rolled back unless it is committed.
import type { Client } from 'pg';
import { Connections, connectFirst } from './connections.ts';
import { requireServer } from './schema.ts';
import { begin } from './session.ts';

const ROWS_PER_PAGE = 500;
const NO_LIMIT = 0;

export interface Transaction {
  readonly client: Client;
  /** What has to be committed meanwhile uses these. */
  readonly connections: Connections;
  readonly close: () => Promise<void>;
}

/** Throws an Error of one line, without the password. */
export async function openTransaction(url: string, isolation?: string): Promise<Transaction> {
  const connections = new Connections(url, 1, { silenceMillis: NO_LIMIT });
  return connectFirst(connections, url, async (client) => {
    await requireServer(client);
    await begin(client, isolation);
    return { client, connections, close: () => connections.close() };
  });
}

/** The rows of a query, page by page. */
export async function* readRows<Row extends object>(client: Client, query: string): AsyncGenerator<readonly Row[]> {
  await client.query(`DECLARE pages NO SCROLL CURSOR FOR ${query}`);
  for (;;) {
    const { rows } = await client.query<Row>(`FETCH ${ROWS_PER_PAGE} FROM pages`);
    if (rows.length === 0) break;
    yield rows;
  }
  await client.query('CLOSE pages');
}
