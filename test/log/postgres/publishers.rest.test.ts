// Three nodes on one log. The publishing node is frozen, woken and killed; the nodes serve the checkpoints of one log, whose size
// never shrinks.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Mirror } from '../../../src/mirror/mirror.ts';
import { temporaryPostgres } from '../../kit/postgres.ts';
import { type ServiceProcess, startProcess } from '../../kit/service-process.ts';
import { Signer } from '../../kit/signer.ts';
import { temporaryFolder } from '../../kit/temporary.ts';
import { eventually } from '../../kit/until.ts';
import { prepare, registrationOf, send } from '../../kit/wire.ts';
import { watchCheckpoints } from '../../nodes/checkpoint-watch.ts';

const NODES = 3;
const ROUNDS = Number(process.env['PUBLISHER_ROUNDS'] ?? NODES);
/** Longer than a lease plus the time in which another node acquires it and publishes. */
const FROZEN_MS = 10_000;

it('a frozen publisher that wakes late publishes nothing, and checkpoints never shrink', {
  timeout: 360_000,
}, async () => {
  const databaseUrl = await temporaryPostgres();
  const settings = { DATABASE_URL: databaseUrl, SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json') };
  const start = () => startProcess('', { ...settings, METRICS_PORT: '0' });
  const nodes: ServiceProcess[] = [];
  for (let node = 0; node < NODES; node++) nodes.push(await start());
  const frozen = new Set<ServiceProcess>();
  const indexes = [...nodes.keys()];
  const awake = (index: number) => {
    const node = nodes[index] as ServiceProcess;
    return frozen.has(node) ? undefined : node.url;
  };
  let [isOver, moves] = [false, 0];
  const watch = await watchCheckpoints(indexes.map((index) => () => awake(index)));
  const moving = indexes.map(async (index) => {
    for (; !isOver; await sleep(50)) {
      const url = awake(index);
      if (url === undefined) continue;
      const body = registrationOf(new Signer());
      const request = prepare('POST', '/register', { body, publicUrl: url });
      const { status } = await send(url, request).catch(() => ({ status: 0 }));
      if (status === 200) moves++;
    }
  });

  await eventually(() => expect(watch.largest()).toBeGreaterThan(0), 20_000);
  for (let round = 0; round < ROUNDS; round++) {
    // Any node may be the publisher, so each is frozen or killed in turn.
    const index = round % NODES;
    const node = nodes[index] as ServiceProcess;
    frozen.add(node);
    const before = watch.largest();
    if (round % 2 === 0) {
      process.kill(node.pid, 'SIGSTOP');
      await sleep(FROZEN_MS);
    } else {
      await node.kill('SIGKILL');
      nodes[index] = await start();
      await sleep(FROZEN_MS);
    }
    await eventually(() => expect(watch.largest()).toBeGreaterThan(before), 60_000);
    if (round % 2 === 0) process.kill(node.pid, 'SIGCONT');
    frozen.delete(node);
  }
  isOver = true;
  await Promise.all([watch.stop(), ...moving]);
  expect(await watch.forks()).toEqual([]);
  await sleep(2_000);
  const folder = temporaryFolder();
  for (const { url } of nodes) {
    const mirror = await Mirror.open({ url, folder });
    const { size } = await mirror.step().finally(() => mirror.close());
    expect(size).toBeGreaterThanOrEqual(moves);
  }
  console.log(`${moves} registrations, ${watch.count()} checkpoints`);
});
