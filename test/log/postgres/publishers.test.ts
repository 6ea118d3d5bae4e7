// Three nodes on one log, of which one publishes: it is frozen, woken and killed, and the checkpoints that the nodes serve are those of one
// log, whose size never falls.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { Mirror } from '../../../src/mirror/mirror.ts';
import { PublishedLog } from '../../../src/mirror/published-log.ts';
import { parseVerifierKey } from '../../../src/tlog/note.ts';
import { openCheckpoint } from '../../../src/tlog/proof.ts';
import { temporaryPostgres } from '../../kit/postgres.ts';
import { type ServiceProcess, startProcess } from '../../kit/service-process.ts';
import { Signer } from '../../kit/signer.ts';
import { temporaryFolder } from '../../kit/temporary.ts';
import { prepare, registrationOf, send } from '../../kit/wire.ts';

const NODES = 3;
const ROUNDS = 4;
/** Longer than a lease, and than another node takes to get it and to publish. */
const FROZEN_MS = 10_000;

it('a publisher that is frozen and wakes late publishes nothing, and sizes never fall', {
  timeout: 240_000,
}, async () => {
  const databaseUrl = await temporaryPostgres();
  const settings = { DATABASE_URL: databaseUrl, SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json') };
  const start = () => startProcess('', { ...settings, METRICS_PORT: '0' });
  const nodes: ServiceProcess[] = [];
  for (let node = 0; node < NODES; node++) nodes.push(await start());
  const { prefix, checkpointKey } = await new PublishedLog((nodes[0] as ServiceProcess).url).name();
  const key = parseVerifierKey(checkpointKey) ?? expect.fail('no key');
  const roots = new Map<number, string>();
  let [isOver, last, moves] = [false, 0, 0];
  const frozen = new Set<ServiceProcess>();
  const alive = () => nodes.filter((node) => !frozen.has(node));

  const watching = (async () => {
    while (!isOver) {
      for (const { url } of alive()) {
        const text = await new PublishedLog(url).checkpoint(prefix).catch(() => undefined);
        if (text === undefined) continue;
        const checkpoint = openCheckpoint(text, key) ?? expect.fail(`no checkpoint: ${text}`);
        expect(checkpoint.size).toBeGreaterThanOrEqual(last);
        last = checkpoint.size;
        const root = Buffer.from(checkpoint.root).toString('hex');
        expect(roots.get(last) ?? root).toBe(root);
        roots.set(last, root);
      }
      await sleep(50);
    }
  })();
  const moving = (async () => {
    while (!isOver) {
      const { url } = alive()[moves % alive().length] as ServiceProcess;
      const body = registrationOf(new Signer());
      const { status } = await send(url, prepare('POST', '/register', { body, publicUrl: url })).catch(() => ({
        status: 0,
      }));
      if (status === 200) moves++;
      await sleep(20);
    }
  })();

  await vi.waitFor(() => expect(last).toBeGreaterThan(0), { timeout: 20_000 });
  for (let round = 0; round < ROUNDS; round++) {
    // Whichever publishes: each is frozen or killed in turn.
    const index = round % NODES;
    const node = nodes[index] as ServiceProcess;
    frozen.add(node);
    const before = last;
    if (round % 2 === 0) {
      process.kill(node.pid, 'SIGSTOP');
      await sleep(FROZEN_MS);
      process.kill(node.pid, 'SIGCONT');
    } else {
      await node.kill('SIGKILL');
      nodes[index] = await start();
      await sleep(FROZEN_MS);
    }
    frozen.delete(node);
    expect(last).toBeGreaterThan(before);
  }
  isOver = true;
  await Promise.all([watching, moving]);
  await sleep(2_000);
  const folder = temporaryFolder();
  for (const { url } of nodes) {
    const mirror = await Mirror.open({ url, folder });
    const { size } = await mirror.step().finally(() => mirror.close());
    expect(size).toBeGreaterThanOrEqual(moves);
  }
  console.log(`${moves} registrations, ${roots.size} checkpoints`);
});
