// Tests the relayer on contracts with the live protocol's interface.
import { decodeFunctionData, encodePacked, keccak256, parseTransaction } from 'viem';
import { beforeEach, expect, test } from 'vitest';
import { QUORUM_FACTORY_ABI } from '../../src/relayer/contracts.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { NEXT_KEY } from './owner-account.ts';
import { quorumContracts, SETTINGS } from './quorum-file.ts';
import { expectSettledOnce, isSettled, openRelayerChain, type RelayerChain, untilFailed } from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain('quorum');
});

test('on quorum contracts the relayer commits the root and deploys each graduated idea with the settings of the file', async () => {
  const { forum } = opened;
  addChamber(forum, 1, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 2 },
    { ticker: 'NONE', backers: 0 },
  ]);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(forum.facts('idea.deployed')).toHaveLength(2);
  const salts = forum.facts('relay.deploy_submitted').map(({ rawTransaction = '0x' }) => {
    const { data = '0x' } = parseTransaction(rawTransaction);
    const { args } = decodeFunctionData({ abi: QUORUM_FACTORY_ABI, data });
    expect(args[0]).toMatchObject({ image: SETTINGS.image, bps: SETTINGS.bps, chamberId: 1n, poolData: '0x01' });
    return args[0].salt;
  });
  const expected = ['idea-1', 'idea-2'].map((id) => keccak256(encodePacked(['uint256', 'string'], [1n, id])));
  expect(salts.toSorted()).toEqual(expected.toSorted());
});

test('a value in the file is sent with each deployment', async () => {
  const { forum, rpc, config } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer({ contracts: quorumContracts({ value: '1000' }) });
  await until(() => isSettled(forum));
  expect(forum.facts('idea.deployed')).toHaveLength(1);
  expect(await rpc.request('eth_getBalance', [config.factoryAddress, 'latest'])).toBe('0x3e8');
});

test('a ticker that another chamber has used fails the deployment and does not delay others', async () => {
  const { forum } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  addChamber(forum, 2, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 1 },
  ]);
  opened.relayer();
  await untilFailed(opened);
  expect(forum.facts('idea.deploy_failed')).toMatchObject([{ ideaId: 'idea-1', reason: 'TickerTaken(ONE)' }]);
  expect(forum.facts('idea.deployed')).toHaveLength(2);
});

test.each([
  [
    'NotDealer',
    { privateKey: NEXT_KEY },
    /^chain: the registry at 0x\w+: commitChamber rejects the account 0x\w+ \(NotDealer/,
  ],
  [
    'InvalidBpsSum',
    { bps: [1, 1, 1, 1, 1, 1] },
    /^chain: the factory at 0x\w+: deployIdea: InvalidBpsSum\(6\): change bps/,
  ],
] as const)(
  'a configuration that causes %s is reported before anything is sent',
  async (_error, { privateKey, bps }: { privateKey?: `0x${string}`; bps?: readonly number[] }, reason) => {
    const { forum } = opened;
    addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
    const changes = { ...(privateKey && { privateKey }), ...(bps && { contracts: quorumContracts({ bps }) }) };
    const stopped = opened.relayer(changes);
    await until(() => !stopped.status().ok);
    expect(stopped.status().reason).toMatch(reason);
    expect(forum.facts('relay.commit_submitted')).toEqual([]);
  },
);
