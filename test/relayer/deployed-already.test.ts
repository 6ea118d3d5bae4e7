// Tests that the deployment of an existing token is never recorded as failed, even while the node does not report the token yet.
import { expect, test } from 'vitest';
import { sendRaw } from '../../src/relayer/chain-client.ts';
import { type ContractProfile, REFERENCE } from '../../src/relayer/contracts.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { Fault } from './fault-proxy.ts';
import { expectSettledOnce, onChain, openRelayerChain, type RelayerChain, signOutsideLog } from './relayer-chain.ts';

async function open(owned?: ContractProfile['name']): Promise<RelayerChain> {
  const opened = await openRelayerChain(owned);
  addChamber(opened.forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  return opened;
}

test('a token deployed between the start of the round and the estimate is recorded as deployed', async () => {
  const opened = await open();
  const { forum, proxy } = opened;
  const [idea] = forum.state(1).ideas;
  if (idea === undefined) throw new Error('no idea');
  let isDeployed = false;
  proxy.fault = async (method) => {
    if (method !== 'eth_estimateGas' || isDeployed || forum.facts('chamber.committed').length === 0) return undefined;
    isDeployed = true;
    await sendRaw(
      opened.rpc,
      await signOutsideLog(opened, { nonce: 1, to: 'factory', data: REFERENCE.deployCall(1, idea) }),
    );
    await until(async () => (await onChain(opened, 1)).deployments.length === 1);
    return undefined;
  };
  opened.relayer({ rpcUrl: proxy.url });
  await expectSettledOnce(opened);
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
});

const NO_REASON = { kind: 'error', message: 'execution reverted' } as const;
test.each<readonly [string, ContractProfile['name'], Fault | undefined]>([
  ['with IdeaAlreadyDeployed', 'reference', undefined],
  ['without a reason', 'reference', NO_REASON],
  ['with TickerTaken', 'quorum', undefined],
  ['without a reason', 'quorum', NO_REASON],
])(
  'the relayer waits while the node does not report a deployment yet and a second one reverts %s, on %s contracts',
  async (_title, kind, revert) => {
    const opened = await open(kind);
    const { forum, proxy } = opened;
    let isHidden = true;
    proxy.fault = (method) => {
      if (!isHidden || forum.facts('relay.deploy_submitted').length === 0) return undefined;
      if (method === 'eth_estimateGas') return revert;
      if (method === 'eth_getLogs') return { kind: 'result', result: [] };
      const isTrace = method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash';
      return isTrace ? { kind: 'result', result: null } : undefined;
    };
    const relayer = opened.relayer({ rpcUrl: proxy.url });
    await until(() => {
      opened.clock.ahead += 100;
      return !relayer.status().ok;
    });
    expect(forum.facts('idea.deploy_failed')).toEqual([]);
    isHidden = false;
    await expectSettledOnce(opened);
    expect(relayer.status().ok).toBe(true);
    expect(forum.facts('relay.deploy_submitted')).toHaveLength(1);
  },
);
