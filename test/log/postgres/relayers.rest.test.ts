// Three nodes relay from one log to one chain. Their leaders freeze at the worst moments and wake after another node has taken
// over: one transaction for each job, and no nonce twice. FREEZE_SECONDS prolongs the freezes.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { freePort } from '../../../src/demo/free-port.ts';
import { startDevChain } from '../../../src/dev-chain/dev-chain.ts';
import { createKeyFile } from '../../../src/keys/key-file.ts';
import { openRpc } from '../../../src/relayer/rpc.ts';
import type { ServiceEvent } from '../../../src/vocabulary/events.ts';
import { run } from '../../cli/run.ts';
import { allocationOf, deadlinesFrom, enterPhase } from '../../kit/chambers.ts';
import { HOUR, TestClock } from '../../kit/clock.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { startProcess } from '../../kit/service-process.ts';
import { atEnd, temporaryFolder } from '../../kit/temporary.ts';
import { PUBLIC_URL, TestService } from '../../kit/test-service.ts';
import { get } from '../../kit/wire.ts';
import { openFaultProxy } from '../../relayer/fault-proxy.ts';
import { onChain, recordingLogger } from '../../relayer/relayer-chain.ts';

const { FREEZE_SECONDS = '0' } = process.env;
const FREEZE_MS = Number(FREEZE_SECONDS) * 1000;
const CHAMBERS = 3;
const IDEAS = 2;
const TIMEOUT_MS = 60_000 + FREEZE_MS;
const JOBS = CHAMBERS * (1 + IDEAS);

interface Node {
  readonly url: string;
  readonly pid: number;
  readonly metricsPort: string;
  readonly sent: Set<string>;
}

it('a leader that wakes from a freeze sends nothing', { timeout: 2 * TIMEOUT_MS }, async () => {
  const databaseUrl = await temporaryPostgres();
  const [keyFile, clock] = [join(temporaryFolder(), 'keys.json'), clockOfYesterday()];
  const store = await openStore(databaseUrl);
  const keys = await createKeyFile(keyFile, store.log.logId, clock.read());
  const service = new TestService({ store, clock, keys: () => keys });
  for (let chamber = 0; chamber < CHAMBERS; chamber++) await playChamber(service);
  const chain = await startDevChain({ logger: recordingLogger([]) });
  atEnd(() => chain.stop());
  const frozen: Node[] = [];
  let isResumed = false;
  /** One node freezes before its signed transaction is in the log, then another before it sends the logged one. */
  const freezeAt = ['eth_getBalance', 'eth_sendRawTransaction'];
  let release = () => {};
  const allStarted = new Promise<void>((resolve) => {
    release = resolve;
  });
  const nodes = await Promise.all([1, 2, 3].map(() => startNode((node, method) => onRequest(node, method))));
  release();

  await until(async () => (await settled()) === CHAMBERS && isResumed);
  // After a long freeze the node's request to the chain has timed out, and the node appends nothing.
  if (FREEZE_MS === 0) await until(async () => (await appends(frozen[0] as Node)) > 0);
  await until(async () => (await leaders(nodes)).length === 1);

  const { ndjson } = await service.log.readAll(0, 10_000);
  const events: ServiceEvent[] = ndjson
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const submitted = events.flatMap((event) =>
    event.type === 'relay.commit_submitted' || event.type === 'relay.deploy_submitted' ? [event.payload] : [],
  );
  expect(submitted.map(({ nonce }) => nonce).toSorted()).toEqual(Array.from({ length: JOBS }, (_, nonce) => nonce));
  const logged = new Set(submitted.map(({ rawTransaction }) => `${rawTransaction}`));
  expect(nodes.flatMap(({ sent }) => [...sent].filter((bytes) => !logged.has(bytes)))).toEqual([]);
  expect([frozen.length, frozen[0]?.sent.size]).toEqual([2, 0]);
  const rpc = openRpc(chain.config.rpcUrl);
  atEnd(() => rpc.close());
  for (let chamberId = 1; chamberId <= CHAMBERS; chamberId++) {
    const { commits, deployments } = await onChain({ rpc, config: chain.config }, chamberId);
    expect([commits.length, deployments.length]).toEqual([1, IDEAS]);
  }
  const { rpcUrl, registryAddress } = chain.config;
  const audit = await run(['audit', (nodes[0] as Node).url, `--rpc=${rpcUrl}`, `--registry=${registryAddress}`]);
  expect([audit.exitCode, audit.err]).toEqual([0, '']);

  async function startNode(onCall: (node: Node, method: string) => Promise<boolean>): Promise<Node> {
    const { registryAddress, factoryAddress, privateKey } = chain.config;
    const proxy = await openFaultProxy(chain.config.rpcUrl);
    atEnd(() => proxy.close());
    const metricsPort = String(await freePort());
    const { url, pid } = await startProcess('', {
      METRICS_PORT: metricsPort,
      CHAIN: '',
      DATABASE_URL: databaseUrl,
      PUBLIC_URL,
      SERVICE_KEY_FILE: keyFile,
      VERIFIER_THREADS: '1',
      RPC_URL: proxy.url,
      RELAYER_PRIVATE_KEY: privateKey,
      CHAMBER_REGISTRY_ADDRESS: registryAddress,
      IDEA_FACTORY_ADDRESS: factoryAddress,
    });
    const node: Node = { url, pid, metricsPort, sent: new Set() };
    proxy.fault = async (method, [bytes]) => {
      const isPassed = await onCall(node, method);
      if (method === 'eth_sendRawTransaction') node.sent.add(String(bytes));
      return isPassed ? undefined : { kind: 'reset' };
    };
    return node;
  }

  /** Returns whether the request reaches the chain. */
  async function onRequest(node: Node, method: string): Promise<boolean> {
    if (freezeAt.includes(method)) await allStarted;
    if (method === 'eth_sendRawTransaction' && frozen.length === freezeAt.length && !isResumed) await resume();
    if (method !== freezeAt[frozen.length] || frozen.includes(node)) return true;
    frozen.push(node);
    process.kill(node.pid, 'SIGSTOP');
    // Another node takes over at once, so that the frozen node's request has not timed out when it wakes, and its own clock says
    // that it leads.
    if (FREEZE_MS === 0) await execute(databaseUrl, "UPDATE leases SET ends_at = '-infinity'");
    return method !== 'eth_sendRawTransaction';
  }

  async function resume(): Promise<void> {
    isResumed = true;
    await sleep(FREEZE_MS);
    for (const { pid } of frozen) process.kill(pid, 'SIGCONT');
  }

  async function settled(): Promise<number> {
    return (await execute(databaseUrl, 'SELECT FROM chambers WHERE is_settled')).length;
  }
});

function clockOfYesterday(): TestClock {
  const clock = new TestClock();
  clock.set(Date.now() - 24 * HOUR);
  return clock;
}

/** Two members back both ideas; the reveal deadline is long past. */
async function playChamber(service: TestService): Promise<void> {
  const members = [await service.agent(), await service.agent()];
  const [by] = members;
  const body = { name: 'Test', minBackersForGraduation: 2, ...deadlinesFrom(service.clock.read(), [1, 2, 2, 3, 4]) };
  const { chamberId } = await service.must('POST', '/chambers', { by, body });
  for (const member of members) await service.must('POST', `/chambers/${chamberId}/join`, { by: member });
  await enterPhase(service, chamberId, 'PROPOSAL');
  for (let idea = 1; idea <= IDEAS; idea++) {
    const proposal = { name: 'Idea', ticker: `T${idea}`, description: '' };
    await service.must('POST', `/chambers/${chamberId}/propose`, { by, body: proposal });
  }
  for (const [phase, step] of [
    ['ALLOCATE_COMMIT', 'commit'],
    ['ALLOCATE_REVEAL', 'reveal'],
  ] as const) {
    await enterPhase(service, chamberId, phase);
    for (const member of members) {
      const { [step]: moved } = allocationOf(chamberId, member, { 'idea-1': 6_000, 'idea-2': 4_000 });
      await service.must('POST', `/chambers/${chamberId}/allocate/${step}`, { by: member, body: moved });
    }
  }
}

/** Returns the node's number of appends, including failed ones. */
async function appends({ metricsPort }: Node): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const counts = [...text.matchAll(/^chambers_(?:events_appended|append_conflicts)_total (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function leaders(nodes: readonly Node[]): Promise<readonly string[]> {
  const states = await Promise.all(nodes.map(({ url }) => get(url, '/health')));
  return nodes.filter((_, index) => states[index]?.body.chain.relayer.leads === true).map(({ url }) => url);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + TIMEOUT_MS; !(await condition()); await sleep(100)) {
    if (performance.now() > end) throw new Error(`condition not met in time: ${condition}`);
  }
}
