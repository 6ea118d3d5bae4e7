// A failed deployment is final, so one simulation is not enough: a node may be broken or lag, or the factory may be paused.
import { type Hex, toFunctionSelector } from 'viem';
import { expect, test } from 'vitest';
import { sendRaw } from '../../src/relayer/chain-client.ts';
import type { ContractProfile } from '../../src/relayer/contracts.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { Fault } from './fault-proxy.ts';
import {
  expectSettledOnce,
  openRelayerChain,
  type RelayerChain,
  signOutsideLog,
  untilFailed,
} from './relayer-chain.ts';

let opened: RelayerChain;
async function open(owned?: ContractProfile['name']): Promise<void> {
  opened = await openRelayerChain(owned);
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
}

const GWEI = 10n ** 9n;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NO_REASON: Fault = { kind: 'error', message: 'execution reverted' };

/** Injects the fault into every estimate of a deployment until it is switched off. */
function revertDeployments(fault: Fault): { isOn: boolean; count: number } {
  const { forum, proxy } = opened;
  const reverts = { isOn: true, count: 0 };
  proxy.fault = (method) => {
    const isDeployment = method === 'eth_estimateGas' && forum.facts('chamber.committed').length > 0;
    if (!isDeployment || !reverts.isOn) return undefined;
    reverts.count++;
    return fault;
  };
  return reverts;
}

test('one estimate that reverts without a reason fails no deployment', async () => {
  await open();
  const { forum, proxy } = opened;
  const reverts = revertDeployments(NO_REASON);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toBe(
    'chamber 1, idea-1: reverted without a reason: recorded as failed if this persists for minutes',
  );
  expect(reverts.count).toBe(1);
  reverts.isOn = false;
  await expectSettledOnce(opened, 200);
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
  expect(relayer.status().ok).toBe(true);
});

test('reverting simulations fail a deployment only after minutes and blocks', async () => {
  await open();
  const { forum, proxy } = opened;
  const reverts = revertDeployments(NO_REASON);
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => {
    opened.clock.ahead += MINUTE;
    return reverts.count > 10;
  });
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
  expect(relayer.status().ok).toBe(false);
  await untilFailed(opened);
  expect(forum.facts('idea.deploy_failed')).toEqual([
    { ideaId: 'idea-1', txHash: null, reason: 'reverted without a reason' },
  ]);
  await until(() => relayer.status().ok);
});

test.each([
  ['EnforcedPause()', toFunctionSelector('EnforcedPause()')],
  ['Pausable: paused', errorOf('Pausable: paused')],
])('the relayer waits for a paused factory (%s)', async (reason, data) => {
  await open();
  const { forum, rpc, proxy, config } = opened;
  const code = await rpc.request('eth_getCode', [config.factoryAddress, 'latest']);
  let isPaused = false;
  proxy.fault = async (method) => {
    if (isPaused || method !== 'eth_estimateGas' || forum.facts('chamber.committed').length === 0) return undefined;
    isPaused = true;
    await rpc.request('anvil_setCode', [config.factoryAddress, revertingWith(data)]);
    return undefined;
  };
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toBe(`chamber 1, idea-1: ${reason}`);
  for (let look = 0; look < 3; look++) {
    opened.clock.ahead += HOUR;
    await rpc.request('evm_mine', []);
    const before = proxy.requests.length;
    await until(() => proxy.requests.length > before + 6);
  }
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
  await rpc.request('anvil_setCode', [config.factoryAddress, code]);
  await expectSettledOnce(opened, 1_000);
  expect(forum.facts('idea.deployed')).toHaveLength(1);
});

test.each(['reference', 'quorum'] as const)(
  'a deployment on %s contracts that lagging nodes do not report yet never counts as failed',
  async (kind) => {
    await open(kind);
    const { forum, proxy, rpc, clock } = opened;
    let isBehind = false;
    /** A lagging node responds to the request after an estimate. */
    let isNextLagging = false;
    proxy.fault = (method, [first]) => {
      if (!isBehind) return undefined;
      const [deployment] = forum.facts('relay.deploy_submitted');
      if (method === 'eth_getLogs') return { kind: 'result', result: [] };
      if (method === 'eth_estimateGas') {
        isNextLagging = true;
        return NO_REASON;
      }
      const isTrace = method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash';
      if (isTrace && first === deployment?.txHash) return { kind: 'result', result: null };
      if (method === 'eth_getTransactionCount' && isNextLagging) {
        isNextLagging = false;
        return { kind: 'result', result: '0x1' };
      }
      const { to, data = '' } = (first ?? {}) as { readonly to?: string; readonly data?: string };
      const isView = method === 'eth_call' && to === opened.config.factoryAddress && data !== '';
      return isView ? { kind: 'result', result: `0x${'0'.repeat(64)}` } : undefined;
    };
    const relayer = opened.relayer({ rpcUrl: proxy.url });
    forum.beforeRecord = (fact) => {
      isBehind ||= fact.type === 'relay.deploy_submitted';
    };
    await until(async () => {
      clock.ahead += MINUTE / 2;
      await rpc.request('evm_mine', []);
      return clock.ahead > HOUR;
    });
    expect(forum.facts('idea.deploy_failed')).toEqual([]);
    expect(relayer.status().ok).toBe(false);
    isBehind = false;
    forum.beforeRecord = () => {};
    await expectSettledOnce(opened, 1_000);
    expect(forum.facts('idea.deployed')).toHaveLength(1);
  },
);

test('a second transaction that reverts because the first has succeeded is not a failure', async () => {
  await open('quorum');
  const { forum, proxy, clock } = opened;
  let isHidden = true;
  proxy.fault = (method, [first]) => {
    const [deployment] = forum.facts('relay.deploy_submitted');
    if (!isHidden || deployment === undefined) return undefined;
    if (method === 'eth_getLogs') return { kind: 'result', result: [] };
    const isSecond = forum.facts('relay.deploy_submitted').length === 1;
    if (method === 'eth_estimateGas' && isSecond) return { kind: 'result', result: '0x2dc6c0' };
    const isTrace = method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash';
    return isTrace && first === deployment.txHash ? { kind: 'result', result: null } : undefined;
  };
  const relayer = opened.relayer({ rpcUrl: proxy.url });
  await until(() => {
    clock.ahead += 200;
    forum.ahead += 200;
    return relayer.status().reason?.includes('its event is missing') === true;
  });
  expect(forum.facts('relay.deploy_submitted')).toHaveLength(2);
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
  isHidden = false;
  await expectSettledOnce(opened, 1_000);
  expect(forum.facts('idea.deployed')).toMatchObject([{ txHash: forum.facts('relay.deploy_submitted')[0]?.txHash }]);
});

test('a deployment can fail even if another program used a nonce of the job', async () => {
  await open();
  const { forum, rpc, proxy, clock } = opened;
  const reverts = revertDeployments(NO_REASON);
  reverts.isOn = false;
  let isUsed = false;
  const { fault } = proxy;
  proxy.fault = async (method, params) => {
    const [deployment] = forum.facts('relay.deploy_submitted');
    if (method !== 'eth_sendRawTransaction' || deployment === undefined) return await fault?.(method, params);
    if (!isUsed) await sendRaw(rpc, await signOutsideLog(opened, { nonce: deployment.nonce, fee: 50n * GWEI }));
    isUsed = true;
    reverts.isOn = true;
    return undefined;
  };
  opened.relayer({ rpcUrl: proxy.url });
  await until(async () => {
    clock.ahead += 10_000;
    await rpc.request('evm_mine', []);
    return forum.facts('idea.deploy_failed').length > 0;
  });
  expect(isUsed).toBe(true);
  expect(forum.facts('idea.deploy_failed')).toEqual([
    { ideaId: 'idea-1', txHash: null, reason: 'reverted without a reason' },
  ]);
  expect(forum.facts('relay.deploy_submitted')).toHaveLength(1);
});

/** Encodes Solidity's Error(string). */
function errorOf(text: string): Hex {
  const words = [32, text.length].map((value) => value.toString(16).padStart(64, '0')).join('');
  return `0x08c379a0${words}${Buffer.from(text).toString('hex').padEnd(64, '0')}`;
}

/** Returns the code of a contract that reverts every call with the data, which follows the 12 bytes of code. */
function revertingWith(data: Hex): Hex {
  const size = ((data.length - 2) / 2).toString(16).padStart(2, '0');
  return `0x60${size}600c60003960${size}6000fd${data.slice(2)}`;
}
