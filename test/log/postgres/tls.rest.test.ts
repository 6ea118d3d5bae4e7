// Server certificates: for an IP address, for a different name, by an untrusted authority.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findPostgresLog } from '../../../src/log/postgres/existing-log.ts';
import { execute } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { atEnd, temporaryFolder } from '../../kit/temporary.ts';

function hasOpenssl(): boolean {
  try {
    return execFileSync('openssl', ['version'], { stdio: 'pipe' }).length > 0;
  } catch {
    return false;
  }
}

/** Starts a server with a self-signed certificate for the subject, and returns the URL that verifies it. */
async function startWithTls(subject: string): Promise<string> {
  const server = await startPostgres();
  atEnd(server.stop);
  const make = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=chambers \
-addext subjectAltName=${subject} -keyout server.key -out server.crt 2> /dev/null && chmod 600 server.key`;
  await execute(server.url, `COPY (SELECT) TO PROGRAM '${make}'`);
  await execute(server.url, 'ALTER SYSTEM SET ssl = on');
  await execute(server.url, 'SELECT pg_reload_conf()');
  const [row] = await execute(server.url, "SELECT pg_read_file('server.crt') AS certificate");
  const authority = join(temporaryFolder(), 'server.crt');
  writeFileSync(authority, String(row?.['certificate']));
  const url = new URL(server.url);
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', authority);
  await expect.poll(() => execute(server.url, 'SHOW ssl')).toEqual([{ ssl: 'on' }]);
  return url.href;
}

it.runIf(hasOpenssl())(
  'a client accepts a certificate for the address, and rejects one for a different name',
  { timeout: 60_000 },
  async () => {
    expect(await findPostgresLog(await startWithTls('IP:127.0.0.1'))).toMatchObject({ hasSynchronousStandby: false });
    await expect(findPostgresLog(await startWithTls('DNS:localhost,IP:127.0.0.2'))).rejects.toThrow(
      /IP: 127\.0\.0\.1 is not in the cert.*: use a host in DATABASE_URL that the certificate names/,
    );
  },
);

it.runIf(hasOpenssl())('the error for an untrusted authority says how to name it', { timeout: 60_000 }, async () => {
  const url = new URL(await startWithTls('IP:127.0.0.1'));
  url.searchParams.delete('sslrootcert');
  url.searchParams.set('sslmode', 'require');
  await expect(findPostgresLog(url.href)).rejects.toThrow(
    /certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\): name the certificate of its authority in DATABASE_URL, as sslmode=verify-full&sslrootcert=FILE$/,
  );
});
