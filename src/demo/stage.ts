// The service of the demo: a process of its own, on a temporary database and its own development chain.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Stage {
  readonly baseUrl: string;
  /** Stops the service and removes its database. */
  close(): Promise<void>;
}

/** From the sources as from what is built of them. */
const MAIN = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url));
const STOP_MILLIS = 5_000;

/** Resolves when the service listens; if it does not start, rejects with its error output. */
export async function openStage(): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'chambers-demo-'));
  const service = spawn(process.execPath, [MAIN], {
    env: environment(folder),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => void service.kill('SIGTERM');
  process.once('exit', kill);
  const close = async () => {
    process.off('exit', kill);
    if (service.exitCode === null && service.signalCode === null) {
      kill();
      const timer = setTimeout(() => service.kill('SIGKILL'), STOP_MILLIS);
      await once(service, 'exit');
      clearTimeout(timer);
    }
    await rm(folder, { recursive: true, force: true });
  };
  let errors = '';
  service.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-4_000);
  });
  for await (const line of createInterface({ input: service.stdout })) {
    const [, baseUrl] = /listening on (http:\/\/\S+)/.exec(line) ?? [];
    if (baseUrl === undefined) continue;
    // Later output must not fill the pipe.
    service.stdout.resume();
    return { baseUrl, close };
  }
  await close();
  throw new Error(`the service did not start: ${errors.trim()}`);
}

/** None of the caller's configuration, so that the demo is the same everywhere. */
function environment(folder: string): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR, LD_LIBRARY_PATH } = process.env;
  const database = join(folder, 'chambers.db');
  return { PATH, HOME, TMPDIR, LD_LIBRARY_PATH, HOST: '127.0.0.1', PORT: '0', DATABASE_PATH: database };
}
