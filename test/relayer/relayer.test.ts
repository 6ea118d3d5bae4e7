import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem';
import { beforeEach, expect, test } from 'vitest';
import { deploymentOf, isDeployed } from '../../projections/settlement.ts';
import { readCall } from '../../src/relayer/chain-client.ts';
import { REFERENCE } from '../../src/relayer/contracts.ts';
import { DEADLINES, type Deadlines, type Hex, toTimestamp } from '../../src/vocabulary/values.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { expectSettledOnce, isSettled, openRelayerChain, type RelayerChain, untilFailed } from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});

test('the relayer commits the root of a closed chamber and deploys the token of each graduate', async () => {
  const { forum, rpc, config } = opened;
  addChamber(forum, 1, [
    { ticker: 'ONE', backers: 2 },
    { ticker: 'TWO', backers: 0 },
    { ticker: 'THREE', backers: 1 },
  ]);
  const relayer = opened.relayer();
  await expectSettledOnce(opened);
  const { committed, commitSubmitted, deployments } = forum.state(1).settlement;
  expect(committed).toMatchObject({ merkleRoot: forum.root(1), eventCount: 8, txHash: commitSubmitted[0]?.txHash });
  expect(await readCall(rpc, { to: config.registryAddress, data: REFERENCE.rootCall(1) })).toBe(forum.root(1));
  expect([...deployments.keys()].toSorted()).toEqual(['idea-1', 'idea-3']);
  expect(relayer.status()).toEqual({ ok: true, pending: 0, failed: 0, leads: true });
});

test('the relayer records the times of the blocks', async () => {
  const { forum, rpc } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  opened.relayer();
  await until(() => isSettled(forum));

  const { settlement } = forum.state(1);
  const block = (await rpc.request('eth_getBlockByNumber', [
    `0x${settlement.committed?.blockNumber.toString(16)}`,
    false,
  ])) as {
    readonly timestamp: string;
  };
  expect(settlement.committed?.committedAt).toBe(new Date(Number(block.timestamp) * 1000).toISOString());
  expect(deploymentOf(settlement, 'idea-1').outcome).toMatchObject({ graduatedAt: expect.stringMatching(/\.000Z$/) });
});

test('the relayer settles a chamber soon after its reveal deadline, and not before', async () => {
  const { forum } = opened;
  addChamber(forum, 1, [], { closesInMillis: 400 });
  opened.relayer();
  const deadline = forum.state(1).deadlines.allocateRevealDeadline;
  await until(async () => forum.now() >= deadline && (await isSettled(forum)));

  const [submitted] = (forum.events.get(1) ?? []).filter((event) => event.type === 'relay.commit_submitted');
  expect(Date.parse(submitted?.ts ?? '')).toBeGreaterThanOrEqual(deadline);
});

test('the relayer settles many chambers at once with one transaction per job', async () => {
  const { forum } = opened;
  for (let chamberId = 1; chamberId <= 20; chamberId++) addChamber(forum, chamberId, [{ ticker: 'T', backers: 1 }]);
  opened.relayer();
  await expectSettledOnce(opened);
  expect(forum.facts('relay.commit_submitted')).toHaveLength(20);
  expect(forum.facts('relay.deploy_submitted')).toHaveLength(20);
});

test('the relayer records the reason of a reverted deployment and continues with the others', async () => {
  const { forum } = opened;
  addChamber(forum, 1, [
    { ticker: 'NOBODY', backers: 2, creatorWallet: `0x${'0'.repeat(40)}` },
    { ticker: 'GOOD', backers: 2 },
  ]);
  const relayer = opened.relayer();
  await untilFailed(opened);

  expect(forum.facts('idea.deploy_failed')).toEqual([
    { ideaId: 'idea-1', txHash: null, reason: `ERC20InvalidReceiver(0x${'0'.repeat(40)})` },
  ]);
  expect(forum.facts('idea.deployed')).toMatchObject([{ ideaId: 'idea-2' }]);
  expect(relayer.status()).toEqual({ ok: true, pending: 0, failed: 1, leads: true });
});

test('the relayer deploys the token of a proposer with a wallet address in upper case', async () => {
  const { forum } = opened;
  addChamber(forum, 1, [{ ticker: 'UP', backers: 1, creatorWallet: `0x${'AB'.repeat(20)}` }]);
  opened.relayer();
  await until(() => isSettled(forum));
  expect(forum.facts('idea.deployed')).toHaveLength(1);
});

test('the relayer deploys the token of an amended idea with its latest name', async () => {
  const { forum, rpc } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1, amendedName: 'A better idea' }]);
  opened.relayer();
  await until(() => isSettled(forum));
  const { outcome } = deploymentOf(forum.state(1).settlement, 'idea-1');
  const to = outcome !== null && isDeployed(outcome) ? (outcome.tokenAddress as Hex) : '0x';
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'name' });
  const name = decodeFunctionResult({ abi: TOKEN_ABI, functionName: 'name', data: await readCall(rpc, { to, data }) });
  expect(name).toBe('A better idea');
});

test('the relayer commits the root of a chamber with too few members long before its deadlines', async () => {
  const { forum } = opened;
  const now = Date.now();
  const times = DEADLINES.map((deadline, index) => [deadline, toTimestamp(now + index * 3_600_000)]);
  const deadlines = Object.fromEntries(times) as Deadlines;
  const created = { name: 'Alone', deadlines, minBackersForGraduation: 1, turnSeconds: null, minMembers: 2 };
  forum.move(1, 'did:key:ann', { type: 'chamber.created', payload: created });
  opened.relayer();
  await until(() => isSettled(forum));
  expect(forum.state(1).settlement.committed).toMatchObject({ merkleRoot: forum.root(1), eventCount: 1 });
});

const TOKEN_ABI = parseAbi(['function name() view returns (string)']);
