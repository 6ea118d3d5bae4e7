// The faults of PostgreSQL, or of the pooler in front of it, that test:outage injects.
import { execFileSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { PgBouncer } from '../kit/pgbouncer.ts';
import type { PostgresServer } from '../kit/postgres-server.ts';
import { signalTree } from '../kit/process-tree.ts';
import { fill, mountSmallDisk, unmount } from '../kit/small-file-system.ts';

export interface Fault {
  readonly name: string;
  readonly begin: () => Promise<unknown> | unknown;
  readonly end: () => Promise<unknown> | unknown;
  /** The expected detail of /ready. */
  readonly detail: RegExp;
  /** Whether only nodes behind the pooler are affected. */
  readonly isOfPooler?: boolean;
}

const DATABASE = '/chambers';
const UNREACHABLE = /cannot be (reached|used)/;

export function faultsOf(server: PostgresServer, pooler: PgBouncer | undefined): readonly Fault[] {
  const faults: readonly Fault[] = [
    { name: 'killed', begin: () => server.kill('SIGKILL'), end: () => server.restart(), detail: UNREACHABLE },
    {
      name: 'frozen',
      begin: () => signalTree(server.pid(), 'SIGSTOP'),
      end: () => signalTree(server.pid(), 'SIGCONT'),
      detail: /does not respond/,
    },
    {
      name: 'revoked',
      begin: () => sql(server, 'REVOKE INSERT ON events FROM chambers', DATABASE),
      end: () => sql(server, 'GRANT INSERT ON events TO chambers', DATABASE),
      detail: /lacks a permission/,
    },
    {
      name: 'read-only',
      begin: () => setting(server, 'default_transaction_read_only = on'),
      end: () => setting(server, 'default_transaction_read_only = off'),
      detail: /read-only/,
    },
  ];
  if (pooler === undefined) return faults;
  const killed = { name: 'the pooler killed', begin: pooler.kill, end: pooler.start, detail: UNREACHABLE };
  return [...faults, { ...killed, isOfPooler: true }];
}

export interface FullDisk {
  readonly fault: Fault;
  readonly close: () => void;
}

/**
 * Moves the events to a small file system, which the fault fills. If mounting is not permitted, a trigger raises the server's
 * error.
 */
export async function openFullDisk(server: PostgresServer): Promise<FullDisk> {
  const detail = /database’s disk is full/;
  const folder = mkdtempSync(join(tmpdir(), 'chambers-tablespace-'));
  if (!mountSmallDisk(folder, '16m')) {
    const [begin, end] = [RAISE, 'DROP TRIGGER full_disk ON events'].map((text) => () => sql(server, text, DATABASE));
    rmSync(folder, { recursive: true });
    const fault = { name: 'full, simulated by a trigger', begin, end, detail } as Fault;
    return { fault, close: () => {} };
  }
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres']))) as [number, number];
  chownSync(folder, uid, gid);
  await sql(server, `CREATE TABLESPACE small LOCATION '${folder}'`);
  await sql(server, 'ALTER TABLE events SET TABLESPACE small', DATABASE);
  const file = join(folder, 'fill');
  return {
    fault: { name: 'full', begin: () => fill(file), end: () => rmSync(file), detail },
    close: () => {
      unmount(folder);
      rmSync(folder, { recursive: true });
    },
  };
}

const RAISE = `CREATE OR REPLACE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
  CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION fill()`;

/** Executes SQL as the superuser. */
export async function sql({ url: serverUrl }: PostgresServer, text: string, database = '/postgres'): Promise<void> {
  const url = new URL(serverUrl);
  url.pathname = database;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** Changes a default of the server, which open sessions follow. The superuser's own session must be able to undo it. */
async function setting({ url: serverUrl }: PostgresServer, text: string): Promise<void> {
  const url = new URL(serverUrl);
  url.searchParams.set('options', '-c default_transaction_read_only=off');
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(`ALTER SYSTEM SET ${text}`);
  await client.query('SELECT pg_reload_conf()').finally(() => client.end());
}
