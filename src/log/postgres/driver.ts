// The driver's client for a host of DATABASE_URL, and statements as it takes them.
import { hash } from 'node:crypto';
import { isIP } from 'node:net';
import pg from 'pg';
import type { SqlValue } from '../sql/sql.ts';

/** Every number of the log is an integer of at most 53 bits; the driver would return those of 64 bits as text. */
const INT8 = pg.types.builtins.INT8;

export function newClient(connectionString: string, limits: pg.ClientConfig): pg.Client {
  const client = new pg.Client({
    connectionString: withPlainMode(connectionString),
    keepAlive: true,
    application_name: 'chambers',
    ...limits,
  });
  client.setTypeParser(INT8, Number);
  verifyAddress(client);
  return client;
}

/** The driver takes these modes for verify-full, and warns of that at each start. */
const VERIFYING_MODE = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/;

function withPlainMode(connectionString: string): string {
  if (new URL(connectionString).searchParams.get('uselibpqcompat') === 'true') return connectionString;
  return connectionString.replace(VERIFYING_MODE, '$1verify-full');
}

/** The driver names the server to TLS only if the host is a name; otherwise the certificate would have to be of `localhost`. */
function verifyAddress(client: pg.Client): void {
  // The types lack it; TLS takes the object as its options.
  const { ssl } = client as { readonly ssl?: boolean | { host?: string } };
  if (typeof ssl === 'object' && isIP(client.host) !== 0) ssl.host = client.host;
}

/** PostgreSQL keeps 63 of a name. */
const NAME_CHARS = 32;
/** The names follow from the texts alone, which are constants: there are few. */
const names = new Map<string, string>();

/** The statement under the name by which each session prepares it once. What it is for begins the name, for who reads the server's log. */
export function prepared(text: string, values: readonly SqlValue[] = [], purpose = 'query'): pg.QueryConfig {
  const name = names.get(text) ?? `${purpose} ${hash('sha256', text).slice(0, NAME_CHARS)}`;
  names.set(text, name);
  return { name, text, values: [...values] };
}
