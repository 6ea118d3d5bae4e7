import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DevChain, startDevChain } from '../../src/dev-chain/dev-chain.ts';
import { examine } from '../../src/doctor/doctor.ts';
import { backupDatabase } from '../../src/log/sqlite/backup.ts';
import type { RelayerConfig } from '../../src/relayer/context.ts';
import { commitChamberCall } from '../../src/relayer/contracts.ts';
import { probeChain } from '../../src/relayer/identity.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { openChamber } from '../kit/chambers.ts';
import { run } from '../kit/service.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { type Fault, openFaultProxy } from './fault-proxy.ts';
import { recordingLogger } from './relayer-chain.ts';

let chain: DevChain;
let config: RelayerConfig;
beforeEach(async () => {
  chain = await startDevChain({ logger: recordingLogger([]) });
  config = { ...chain.config, feeBumpSeconds: 30 };
});
afterEach(() => chain.stop());

function probe(config: RelayerConfig) {
  return probeChain(config, openAccount(config.privateKey).address);
}

const NO_CONTRACT = `0x${'12'.repeat(20)}` as const;

test('a probe reports a chain other than the configured one', async () => {
  const { mismatches } = await probe({ ...config, chainId: 1 });
  expect(mismatches).toEqual([{ variable: 'CHAIN_ID', problem: 'the RPC serves chain 31337, expected 1' }]);
});

test('a probe reports every address without a contract', async () => {
  const { mismatches } = await probe({ ...config, registryAddress: NO_CONTRACT, factoryAddress: NO_CONTRACT });
  expect(mismatches.map(({ variable }) => variable)).toEqual(['CHAMBER_REGISTRY_ADDRESS', 'IDEA_FACTORY_ADDRESS']);
});

test('a probe warns of a relayer account without funds', async () => {
  const rpc = openRpc(config.rpcUrl);
  await rpc.request('anvil_setBalance', [openAccount(config.privateKey).address, '0x0']);
  rpc.close();
  const report = await probe(config);
  expect(report).toMatchObject({ balance: 0n, mismatches: [], warnings: [{ variable: 'RELAYER_PRIVATE_KEY' }] });
});

test('a probe reports an unavailable RPC as a warning, because it may come back', async () => {
  const proxy = await openFaultProxy(config.rpcUrl);
  proxy.close();
  const report = await probe({ ...config, rpcUrl: proxy.url });
  expect(report).toMatchObject({ chainId: undefined, mismatches: [] });
  expect(report.warnings).toEqual([{ variable: 'RPC_URL', problem: 'RPC unreachable (ECONNREFUSED)' }]);
});

test('doctor finds ids that the registry already has, and the lowest free id, for a restored log', async () => {
  const rpc = openRpc(config.rpcUrl);
  const { address: from } = openAccount(config.privateKey);
  await rpc.request('anvil_impersonateAccount', [from]);
  for (const chamberId of [2, 3, 5]) {
    const data = commitChamberCall(chamberId, `0x${'ab'.repeat(32)}`);
    await rpc.request('eth_sendTransaction', [{ from, to: config.registryAddress, data }]);
  }
  rpc.close();
  const path = join(temporaryFolder(), 'chambers.db');
  const service = new TestService({ path });
  for (const _ of [1, 2]) await openChamber(service, [await service.agent()]);
  await service.close();
  const copy = `${path}.copy`;
  await backupDatabase(path, copy);
  const examined = async (env: Readonly<Record<string, string>>) => {
    const findings = await examine({
      RPC_URL: config.rpcUrl,
      CHAMBER_REGISTRY_ADDRESS: config.registryAddress,
      IDEA_FACTORY_ADDRESS: config.factoryAddress,
      RELAYER_PRIVATE_KEY: config.privateKey,
      ...env,
    });
    return findings.filter(({ subject, level }) => subject === 'chain' && level !== 'ok');
  };
  const detail = expect.stringMatching(/ roots of chambers 3, 5 that .* set it to 6 or more$/);
  expect(await examined({ DATABASE_PATH: copy })).toEqual([
    { subject: 'chain', level: 'warning', variable: 'CHAMBER_ID_MIN', detail, exitCode: 0 },
    {
      subject: 'chain',
      level: 'warning',
      variable: null,
      exitCode: 0,
      detail: expect.stringContaining(' chambers 2, which are open'),
    },
  ]);
  expect(await examined({ DATABASE_PATH: copy, CHAMBER_ID_MIN: '6' })).toMatchObject([{ variable: null }]);
  expect(await examined({ DATABASE_PATH: path })).toMatchObject([
    {
      level: 'warning',
      variable: 'CHAMBER_ID_MIN',
      detail: expect.stringMatching(/ chambers 3, 5 that .* another service/),
    },
  ]);
});

test('a start on a new log warns about contracts that are already in use, but not about new contracts', async () => {
  const rpc = openRpc(config.rpcUrl);
  const { address: from } = openAccount(config.privateKey);
  const settings = {
    CHAIN: '',
    RPC_URL: config.rpcUrl,
    CHAMBER_REGISTRY_ADDRESS: config.registryAddress,
    IDEA_FACTORY_ADDRESS: config.factoryAddress,
    RELAYER_PRIVATE_KEY: config.privateKey,
  };
  const logged = async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    await (await run({ ...settings, DATABASE_PATH: ':memory:' }, undefined, logger)).stop();
    const warnings = lines.map((line) => JSON.parse(line)).filter(({ variable }) => variable === 'CHAMBER_ID_MIN');
    return warnings.map(({ msg }) => msg);
  };
  expect(await logged()).toEqual([]);
  await rpc.request('anvil_impersonateAccount', [from]);
  const data = commitChamberCall(1, `0x${'ab'.repeat(32)}`);
  await rpc.request('eth_sendTransaction', [{ from, to: config.registryAddress, data }]);
  rpc.close();
  expect(await logged()).toEqual([expect.stringMatching(/ roots of chambers 1 that .* set it to 2 or more$/)]);
});

test('an invalid private key is rejected without being quoted', () => {
  const privateKey = `0x${'f'.repeat(64)}` as const;
  expect(() => openAccount(privateKey)).toThrow(
    /^the relayer’s private key must be 0x and 64 hex digits, a key of secp256k1$/,
  );
});

describe('the requirements for sending', () => {
  const UNKNOWN_METHOD = { kind: 'error', code: -32_601, message: 'method not found' } as const;

  /** Resolves to the findings of doctor and the outcome of a start. */
  async function problems(faultOf: (method: string, params: readonly unknown[]) => Fault | undefined, env = {}) {
    const proxy = await openFaultProxy(config.rpcUrl);
    atEnd(() => proxy.close());
    proxy.fault = faultOf;
    const { RPC_URL, ...rest } = { ...environment(), RPC_URL: proxy.url, ...env };
    const findings = await examine({ RPC_URL, ...rest });
    const started = await run({ RPC_URL, CHAIN: '', ...rest }).then(
      async ({ stop }) => await stop().then(() => 'started'),
      (error: Error) => error.message,
    );
    const found = findings.filter(({ subject, level }) => subject === 'chain' && level !== 'ok');
    return { found: found.map(({ level, variable, detail }) => [level, variable, detail]), started };
  }

  function environment() {
    return {
      RPC_URL: config.rpcUrl,
      CHAMBER_REGISTRY_ADDRESS: config.registryAddress,
      IDEA_FACTORY_ADDRESS: config.factoryAddress,
      RELAYER_PRIVATE_KEY: config.privateKey,
    };
  }

  test('a sound chain meets the requirements for sending', async () => {
    expect(await problems(() => undefined)).toEqual({ found: [], started: 'started' });
  });

  test('a chain without a base fee prevents the start', async () => {
    const block = { number: '0x2', hash: `0x${'ab'.repeat(32)}`, timestamp: '0x1', gasLimit: '0x1c9c380' };
    const { found, started } = await problems((method) =>
      method === 'eth_getBlockByNumber' ? { kind: 'result', result: block } : undefined,
    );
    const detail = expect.stringContaining('the chain has no base fee (EIP-1559)');
    expect(found).toEqual([['problem', 'RPC_URL', detail]]);
    expect(started).toMatch(/^RPC_URL: the chain has no base fee/);
  });

  test('a node that suggests no tip prevents the start, unless a tip is configured', async () => {
    const noTip = (method: string) =>
      ['eth_maxPriorityFeePerGas', 'eth_feeHistory'].includes(method) ? UNKNOWN_METHOD : undefined;
    const { found, started } = await problems(noTip);
    expect(found).toEqual([['problem', 'FEE_TIP_GWEI', expect.stringContaining('suggests no tip')]]);
    expect(started).toMatch(/^FEE_TIP_GWEI: /);
    expect(await problems(noTip, { FEE_TIP_GWEI: '1' })).toEqual({ found: [], started: 'started' });
  });

  test('a fee above the limit is a warning', async () => {
    const { found, started } = await problems(() => undefined, { FEE_MAX_GWEI: '0.5' });
    expect(found).toEqual([['warning', 'FEE_MAX_GWEI', expect.stringContaining('above the limit of 0.5')]]);
    expect(started).toBe('started');
  });

  test('a missing gas estimate, or an estimate above the gas of a block, prevents the start', async () => {
    const without = await problems((method) => (method === 'eth_estimateGas' ? UNKNOWN_METHOD : undefined));
    expect(without.found).toEqual([['problem', 'RPC_URL', 'eth_estimateGas: method not found']]);
    expect(without.started).toBe('RPC_URL: eth_estimateGas: method not found');
    const above = await problems((method) =>
      method === 'eth_estimateGas' ? { kind: 'result', result: '0x1c9c3801' } : undefined,
    );
    expect(above.found).toEqual([
      ['problem', 'RPC_URL', expect.stringMatching(/needs 480000001 gas, and a block has 30000000$/)],
    ]);
  });

  test('pending transactions of the relayer’s account are a warning', async () => {
    const { found } = await problems((method, [, block]) =>
      method === 'eth_getTransactionCount' && block === 'pending' ? { kind: 'result', result: '0x3' } : undefined,
    );
    const detail = expect.stringMatching(/^3 transactions of 0x\w+ wait for a block/);
    expect(found).toEqual([['warning', 'RELAYER_PRIVATE_KEY', detail]]);
  });
});
