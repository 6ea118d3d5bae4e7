// The relayer on contracts with the live protocol's interface.
import { decodeFunctionData, encodePacked, keccak256, parseTransaction } from 'viem';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RelayerConfig } from '../../src/relayer/context.ts';
import { QUORUM_FACTORY_ABI } from '../../src/relayer/contracts.ts';
import type { Relayer } from '../../src/relayer/relayer.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { type Fault, openFaultProxy } from './fault-proxy.ts';
import { deployFor, NEXT_KEY } from './owner-account.ts';
import { quorumContracts, SETTINGS } from './quorum-file.ts';
import { expectRecordedOnce, isSettled, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let stage: RelayerChain;
let wiring: Pick<RelayerConfig, 'contracts' | 'registryAddress' | 'factoryAddress'>;
beforeEach(async () => {
  const opened = await openRelayerChain();
  const addresses = await deployFor(opened.rpc, opened.chain.config.privateKey, 'quorum');
  wiring = { ...addresses, contracts: quorumContracts() };
  stage = { ...opened, chain: { config: { ...opened.chain.config, ...wiring } } as RelayerChain['chain'] };
});
afterEach(() => stage.close());

function relayer(changes: Partial<RelayerConfig> = {}): Relayer {
  return stage.relayer({ ...wiring, ...changes });
}

test('commits the root and deploys each graduate, with what the file says', async () => {
  const { forum } = stage;
  addChamber(forum, 1, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 2 },
    { ticker: 'NONE', backers: 0 },
  ]);
  relayer();
  await until(() => isSettled(forum));
  await expectRecordedOnce(stage);
  expect(forum.facts('idea.deployed')).toHaveLength(2);
  const salts = forum.facts('relay.deploy_submitted').map(({ rawTransaction }) => {
    const { data = '0x' } = parseTransaction(rawTransaction);
    const { args } = decodeFunctionData({ abi: QUORUM_FACTORY_ABI, data });
    expect(args[0]).toMatchObject({ image: SETTINGS.image, bps: SETTINGS.bps, chamberId: 1n, poolData: '0x01' });
    return args[0].salt;
  });
  expect(salts).toEqual(['idea-1', 'idea-2'].map((id) => keccak256(encodePacked(['uint256', 'string'], [1n, id]))));
});

test('a value in the file is sent with each deployment', async () => {
  const { forum, rpc } = stage;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  relayer({ contracts: quorumContracts({ value: '1000' }) });
  await until(() => isSettled(forum));
  expect(forum.facts('idea.deployed')).toHaveLength(1);
  expect(await rpc.request('eth_getBalance', [wiring.factoryAddress, 'latest'])).toBe('0x3e8');
});

test('a ticker that another chamber has taken is a failed deployment and holds up no other', async () => {
  const { forum } = stage;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  addChamber(forum, 2, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 1 },
  ]);
  relayer();
  await until(() => isSettled(forum));
  expect(forum.facts('idea.deploy_failed')).toMatchObject([{ ideaId: 'idea-1', reason: 'TickerTaken(ONE)' }]);
  expect(forum.facts('idea.deployed')).toHaveLength(2);
});

test.each([
  [
    'NotDealer',
    { privateKey: NEXT_KEY },
    /^chain: the registry at 0x\w+: commitChamber refuses the account 0x\w+ \(NotDealer/,
  ],
  [
    'InvalidBpsSum',
    { bps: [1, 1, 1, 1, 1, 1] },
    /^chain: the factory at 0x\w+: deployIdea: InvalidBpsSum\(6\): change bps/,
  ],
] as const)(
  '%s is named before anything is sent',
  async (_error, { privateKey, bps }: { privateKey?: `0x${string}`; bps?: readonly number[] }, reason) => {
    const { forum } = stage;
    addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
    const changes = { ...(privateKey && { privateKey }), ...(bps && { contracts: quorumContracts({ bps }) }) };
    const stopped = relayer(changes);
    await until(() => !stopped.status().ok);
    expect(stopped.status().reason).toMatch(reason);
    expect(forum.facts('relay.commit_submitted')).toEqual([]);
  },
);

test.each(['relay.commit_submitted', 'chamber.committed', 'relay.deploy_submitted', 'idea.deployed'] as const)(
  'a relayer killed before it could log %s leaves nothing that the next one repeats',
  async (type) => {
    const { forum } = stage;
    addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
    let isDown = false;
    forum.beforeRecord = (fact) => {
      isDown ||= fact.type === type;
      if (isDown) throw new Error('killed');
    };
    const first = relayer();
    await until(() => isDown);
    await first.stop();
    forum.beforeRecord = () => {};
    relayer();
    await until(() => isSettled(forum));
    await expectRecordedOnce(stage);
  },
);

const REVERTS: readonly (readonly [string, Fault | undefined])[] = [
  ['with TickerTaken', undefined],
  ['without a reason', { kind: 'error', message: 'execution reverted' }],
];
test.each(REVERTS)(
  'a deployment whose traces are late and that reverts, when tried again, %s is waited for',
  async (_title, revert) => {
    const { forum } = stage;
    addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
    const proxy = await openFaultProxy(stage.chain.config.rpcUrl);
    let isHidden = true;
    proxy.fault = (method) => {
      if (!isHidden || forum.facts('relay.deploy_submitted').length === 0) return undefined;
      if (method === 'eth_estimateGas') return revert;
      if (method === 'eth_getLogs') return { kind: 'result', result: [] };
      const isTrace = method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash';
      return isTrace ? { kind: 'result', result: null } : undefined;
    };
    const waiting = relayer({ rpcUrl: proxy.url });
    await until(() => {
      stage.clock.ahead += 100;
      return !waiting.status().ok;
    });
    expect(forum.facts('idea.deploy_failed')).toEqual([]);
    isHidden = false;
    await until(() => isSettled(forum));
    expect(forum.facts('relay.deploy_submitted')).toHaveLength(1);
    await expectRecordedOnce(stage);
    proxy.close();
  },
);
