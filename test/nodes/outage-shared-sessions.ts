// PgBouncer in transaction mode, in test:outage: start, doctor and fsck exit with one sentence, and leave its sessions unchanged.
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { startPgBouncer } from '../kit/pgbouncer.ts';

/** The pool sizes; with one session, all statements of a program may run in the same session. */
const SESSIONS = [1, 4];
const PROGRAM_MS_MAX = 20_000;
const SENTENCE = /a pooler shares .* its session mode/;

interface Options {
  readonly databaseUrl: string;
  readonly folder: string;
  /** The path of the service's program; the command line is in the same folder. */
  readonly program: string;
}

export async function refusalsOfSharedSessions({ databaseUrl, folder, program }: Options): Promise<readonly string[]> {
  const problems: string[] = [];
  const cli = join(dirname(program), 'cli.js');
  const programs = [[program], [cli, 'doctor'], [cli, 'fsck']] as const;
  for (const sessions of SESSIONS) {
    const pooler = await startPgBouncer({ databaseUrl, mode: 'transaction', folder });
    const clients = await Promise.all(Array.from({ length: sessions }, () => openClient(pooler.url)));
    // Concurrent transactions make the pooler open a session for each.
    await Promise.all(clients.map((client) => client.query('SELECT pg_sleep(0.2)')));
    for (const args of programs) {
      const { code, output } = await run(args, pooler.url);
      if (code === 0 || !SENTENCE.test(output))
        problems.push(`behind a pooler in transaction mode, ${args.join(' ')} exited with ${code}: ${output}`);
    }
    const settings = await Promise.all(clients.map((client) => client.query('SHOW jit')));
    if (settings.some(({ rows }) => rows[0].jit !== 'on')) problems.push('a shared session was changed');
    await Promise.all(clients.map((client) => client.end()));
    await pooler.kill();
  }
  return problems;
}

async function openClient(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

interface Ended {
  readonly code: string | number | null | undefined;
  readonly output: string;
}

/** Kills a program that does not exit in time; its code is then null. */
function run(args: readonly string[], url: string): Promise<Ended> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, DATABASE_URL: url, PORT: '0', CHAIN: 'none', LOG_LEVEL: 'error' };
  return new Promise((resolve) => {
    execFile(process.execPath, [...args], { env, timeout: PROGRAM_MS_MAX }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr }),
    );
  });
}
