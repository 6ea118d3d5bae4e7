// SIGTERM while the database is frozen: the service stops, and reports unanswered moves.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { deadlinesFrom } from '../../kit/chambers.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { processTree } from '../../kit/process-tree.ts';
import { type Exit, PUBLIC_URL, type ServiceProcess, startProcess } from '../../kit/service-process.ts';
import { Signer } from '../../kit/signer.ts';
import { atEnd } from '../../kit/temporary.ts';
import { prepare, registrationOf, send } from '../../kit/wire.ts';

const STOP_MS_MAX = 10_000;

/** Starts a service with its own PostgreSQL server, and returns a function that freezes that server. */
async function start() {
  const server = await startPostgres();
  const service = await startProcess('', { DATABASE_URL: server.url });
  const signalAll = (signal: NodeJS.Signals) => {
    for (const pid of processTree(server.pid())) {
      try {
        process.kill(pid, signal);
      } catch {
        // A worker of the server may have ended since it was listed.
      }
    }
  };
  atEnd(async () => {
    signalAll('SIGCONT');
    await server.stop();
  });
  return { service, freeze: () => signalAll('SIGSTOP') };
}

async function stopped(service: ServiceProcess): Promise<Exit> {
  const late = sleep(STOP_MS_MAX, undefined, { ref: false }).then(() =>
    Promise.reject(new Error('the service did not exit in time')),
  );
  return Promise.race([service.kill('SIGTERM'), late]);
}

it('a stop without a move in progress exits with 0', async () => {
  const { service, freeze } = await start();
  freeze();
  expect(await stopped(service)).toMatchObject({
    ...{ code: 0, signal: null },
    // No errors are logged; the missing standby is a warning.
    stderr: expect.not.stringMatching(/"level":[56]0/),
  });
});

it('a stop exits with 1 and reports it if a move has no response', async () => {
  const { service, freeze } = await start();
  const by = new Signer();
  const must = async (path: string, body?: object) => {
    const { status } = await send(service.url, prepare('POST', path, { by, body, publicUrl: PUBLIC_URL }));
    expect(status).toBe(200);
  };
  await must('/register', registrationOf(by));
  await must('/chambers', { name: 'Test', ...deadlinesFrom(Date.now()) });
  freeze();
  const join = must('/chambers/1/join').catch((error: unknown) => error);
  // After its signature was verified, nothing shows when the move starts to wait for the database.
  await sleep(500);
  const { code, stderr } = await stopped(service);
  expect(code).toBe(1);
  expect(stderr.trimEnd().split('\n').at(-1)).toContain('without a response to accepted moves');
  expect(await join).toBeInstanceOf(TypeError);
});
