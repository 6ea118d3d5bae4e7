// The driver's client for a host of DATABASE_URL.
import { isIP } from 'node:net';
import pg from 'pg';

export function newClient(connectionString: string, limits: pg.ClientConfig): pg.Client {
  const client = new pg.Client({ connectionString, keepAlive: true, application_name: 'chambers', ...limits });
  verifyAddress(client);
  return client;
}

/** The driver names the server to TLS only if the host is a name; otherwise the certificate would have to be of `localhost`. */
function verifyAddress(client: pg.Client): void {
  // The types lack it; TLS takes the object as its options.
  const { ssl } = client as { readonly ssl?: boolean | { host?: string } };
  if (typeof ssl === 'object' && isIP(client.host) !== 0) ssl.host = client.host;
}
