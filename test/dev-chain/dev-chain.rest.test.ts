import { spawn } from 'node:child_process';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import { type DevChain, startDevChain } from '../../src/dev-chain/dev-chain.ts';
import { findLine } from '../../src/process/child-output.ts';
import { hasCode } from '../../src/relayer/chain-client.ts';
import { probeChain } from '../../src/relayer/identity.ts';
import { Relayer } from '../../src/relayer/relayer.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { isAlive } from '../kit/process-tree.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { addChamber } from '../relayer/chambers.ts';
import { MemoryForum } from '../relayer/memory-forum.ts';
import { expectRecordedOnce, isSettled, onChain, recordingLogger } from '../relayer/relayer-chain.ts';

let stateFile: string;
/** Less than the timeout of a request to the chain. */
const STOP_MILLIS_MAX = 2_800;
const RECIPIENT = `0x${'5b'.repeat(20)}`;
const lines: string[] = [];
const logger = recordingLogger(lines);

beforeEach(() => {
  lines.length = 0;
  stateFile = join(temporaryFolder(), 'chain.json');
});

test('a first start of the development chain deploys the reference contracts, and a probe finds no problem', async () => {
  const chain = await start();
  const report = await probeChain(chain.config, openAccount(chain.config.privateKey).address);
  expect(report).toMatchObject({ chainId: 31_337, mismatches: [], warnings: [] });
});

test('a later start finds the contracts, roots and tokens of the first start', async () => {
  const first = await start({ stateFile });
  const forum = new MemoryForum();
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  await settle(first, forum);
  const before = await look(first);
  await first.stop();

  const second = await start({ stateFile });
  expect(second.config).toEqual({ ...first.config, rpcUrl: second.config.rpcUrl });
  expect(await look(second)).toEqual(before);
  expect(before).toEqual({ commits: [expect.anything()], deployments: [expect.anything()] });
  addChamber(forum, 2, []);
  await settle(second, forum);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(2);
});

test('a chain whose state is older than the log is brought up to the log', async () => {
  const first = await start({ stateFile });
  const older = `${stateFile}.older`;
  await copyFile(stateFile, older);
  const forum = new MemoryForum();
  for (const chamberId of [1, 2, 3]) addChamber(forum, chamberId, [{ ticker: 'ONE', backers: 1 }]);
  await settle(first, forum);
  await first.stop();
  const events = structuredClone(forum.events);

  const second = await start({ stateFile: older });
  const relayer = relayerOf(second, forum);
  await until(async () => (await look(second, 3)).deployments.length === 1);
  await relayer.stop();
  for (const chamberId of [1, 2, 3]) {
    const { committed, deployments } = forum.state(chamberId).settlement;
    expect(await look(second, chamberId)).toEqual({
      commits: [committed?.txHash],
      deployments: [deployments.get('idea-1')?.outcome?.txHash],
    });
  }
  expect(forum.events).toEqual(events);
});

test.each([
  ['cut', (state: string) => state.slice(0, 1_000)],
  ['empty', () => ''],
])(
  'a state file that is %s is reported by name; once it is removed, the relayer settles the log again on a new chain',
  async (_what, damage) => {
    const first = await start({ stateFile });
    const forum = new MemoryForum();
    addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
    await settle(first, forum);
    const before = await look(first);
    await first.stop();
    await writeFile(stateFile, damage(await readFile(stateFile, 'utf8')));
    const problem = `the development chain's state is damaged: move ${stateFile} away, and the next start`;
    await expect(start({ stateFile })).rejects.toThrow(problem);

    await rm(stateFile);
    const second = await start({ stateFile });
    const relayer = relayerOf(second, forum);
    await until(async () => (await look(second)).deployments.length === 1);
    await relayer.stop();
    expect(await look(second)).toEqual(before);
  },
);

test('a state saved by release 0.1, whose contracts have no owner, still works', async () => {
  const state = new URL('../../fixtures/logs/release-0.1/chain.json.gz', import.meta.url);
  await writeFile(stateFile, gunzipSync(await readFile(state)));
  const chain = await start({ stateFile });
  expect((await probeChain(chain.config, openAccount(chain.config.privateKey).address)).mismatches).toEqual([]);
  const forum = new MemoryForum();
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  await settle(chain, forum);
  expect(await look(chain)).toEqual({ commits: [expect.anything()], deployments: [expect.anything()] });
});

test('an Anvil that dies is restarted at the same address, with its state', async () => {
  const chain = await start({ stateFile });
  const { pid } = chain;
  process.kill(pid, 'SIGKILL');
  const rpc = openRpc(chain.config.rpcUrl);
  await until(async () => chain.pid !== pid && (await hasCode(rpc, chain.config.factoryAddress)));
  rpc.close();
});

const SAVED_STATES = 6;

test('a state saved while transactions are mined contains each of them completely or not at all', async () => {
  const chain = await start({ stateFile });
  const rpc = openRpc(chain.config.rpcUrl);
  const { address: from } = openAccount(chain.config.privateKey);
  const transfer = () => rpc.request('eth_sendTransaction', [{ from, to: RECIPIENT, value: '0x1' }]);
  let isOver = false;
  const bursts = (async () => {
    while (!isOver) {
      for (let sent = 0; sent < 150; sent++) await transfer();
      await sleep(500);
    }
  })();
  const saved = new Map<number, number>();
  await until(async () => {
    const { accounts, transactions } = JSON.parse(await readFile(stateFile, 'utf8'));
    const account = accounts[from.toLowerCase()] as { readonly nonce: number | string };
    const mined = transactions.filter((each: object) => JSON.stringify(each).includes(RECIPIENT.slice(2)));
    saved.set(Number(account.nonce), mined.length);
    return saved.size === SAVED_STATES;
  }, 90_000);
  isOver = true;
  await bursts;
  rpc.close();
  expect([...saved.values()]).toEqual([...saved.keys()]);
});

test('a frozen Anvil is restarted from its saved state; each chamber is committed once and each failure logged once', async () => {
  const chain = await start({ stateFile });
  const forum = new MemoryForum();
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  await settle(chain, forum);
  const { pid } = chain;
  process.kill(pid, 'SIGSTOP');
  addChamber(forum, 2, [{ ticker: 'TWO', backers: 1 }]);
  const relayer = relayerOf(chain, forum);
  await until(() => chain.problem !== undefined);
  expect(chain.problem).toBe('the development chain does not respond');
  await until(() => isSettled(forum));
  await until(async () => (await look(chain, 1)).deployments.length === 1);
  await relayer.stop();
  // The relayer may use the new Anvil before its start is complete.
  await until(() => chain.problem === undefined);
  expect(chain.pid).not.toBe(pid);
  const rpc = openRpc(chain.config.rpcUrl);
  await expectRecordedOnce({ rpc, config: chain.config, forum });
  rpc.close();
  expect(messages().filter((message) => message.includes('development chain'))).toEqual([
    'cannot restart or save the development chain',
    'the development chain does not respond, restarting',
    'development chain restarted',
  ]);
});

test('stopping does not wait for a frozen chain', async () => {
  const chain = await start({ stateFile });
  process.kill(chain.pid, 'SIGSTOP');
  expect(await Promise.race([chain.stop(), sleep(STOP_MILLIS_MAX, 'late')])).toBeUndefined();
  expect(isAlive(chain.pid)).toBe(false);
});

test('stopping does not wait for a restart in progress', async () => {
  const chain = await start({ stateFile });
  process.kill(chain.pid, 'SIGKILL');
  await until(() => messages().includes('the development chain exited, restarting'));
  expect(await Promise.race([chain.stop(), sleep(STOP_MILLIS_MAX, 'late')])).toBeUndefined();
});

test('stopping the chain stops Anvil', async () => {
  const chain = await start();
  expect(isAlive(chain.pid)).toBe(true);
  await chain.stop();
  expect(isAlive(chain.pid)).toBe(false);
});

describe.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)('a process ended by %s', (signal) => {
  test(`a process ended by ${signal} ends its Anvil`, async () => {
    const module = new URL('../../src/dev-chain/anvil.ts', import.meta.url).href;
    const program = `const { spawnAnvil } = await import(${JSON.stringify(module)}); console.log((await spawnAnvil([])).pid);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await findLine(child.stdout, /^\d+$/);
    const pid = Number(line);
    expect(isAlive(pid)).toBe(true);
    child.kill(signal);
    await until(() => !isAlive(pid));
  });
});

async function start(options: { readonly stateFile?: string } = {}): Promise<DevChain> {
  const chain = await startDevChain({ logger, ...options });
  atEnd(() => chain.stop());
  return chain;
}

function messages(): readonly string[] {
  return lines.map((line) => JSON.parse(line).message);
}

function relayerOf(chain: DevChain, forum: MemoryForum): Relayer {
  const relayer = new Relayer({ config: { ...chain.config, feeBumpSeconds: 30 }, forum, logger });
  relayer.start();
  return relayer;
}

async function settle(chain: DevChain, forum: MemoryForum): Promise<void> {
  const relayer = relayerOf(chain, forum);
  await until(() => isSettled(forum));
  await relayer.stop();
}

async function look(chain: DevChain, chamberId = 1) {
  const rpc = openRpc(chain.config.rpcUrl);
  try {
    return await onChain({ rpc, config: chain.config }, chamberId);
  } finally {
    rpc.close();
  }
}
