import { expect, test } from 'vitest';
import type { ContractProfile } from '../../src/relayer/contracts.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import { Random } from '../kit/random.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { isSettled, onChain, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
let proxy: FaultProxy;
async function open(owned?: ContractProfile['name']): Promise<void> {
  opened = await openRelayerChain(owned);
  proxy = opened.proxy;
  addChamber(opened.forum, 1, [
    { ticker: 'ONE', backers: 1 },
    { ticker: 'TWO', backers: 1 },
  ]);
}

const TYPES = ['relay.commit_submitted', 'chamber.committed', 'relay.deploy_submitted', 'idea.deployed'] as const;

test.each(TYPES)('a log that temporarily rejects %s delays the work but repeats nothing', async (type) => {
  await open();
  let failures = 0;
  opened.forum.beforeRecord = (fact) => {
    if (fact.type === type && failures++ < 3) throw new Error('the disk is full');
  };
  opened.relayer();
  await until(() => isSettled(opened.forum));
  expect(failures).toBeGreaterThan(3);
  await expectOnce();
});

const KINDS = ['reference', 'quorum'] as const;

test.each(KINDS.flatMap((kind) => TYPES.map((type) => [type, kind] as const)))(
  'after a relayer is killed before it logs %s, the next one repeats no transaction on %s contracts',
  async (type, kind) => {
    await open(kind);
    let isDown = false;
    opened.forum.beforeRecord = (fact) => {
      isDown ||= fact.type === type;
      if (isDown) throw new Error('killed');
    };
    const first = opened.relayer();
    await until(() => isDown);
    await first.stop();
    opened.forum.beforeRecord = () => {};
    opened.relayer();
    await expectOnce();
  },
);

test.each(['relay.commit_submitted', 'relay.deploy_submitted'] as const)(
  'after a relayer is killed between logging %s and sending it, the next one sends the logged bytes',
  async (type) => {
    await open();
    let isLogged = false;
    opened.forum.beforeRecord = (fact) => {
      isLogged ||= fact.type === type;
    };
    proxy.fault = (method) => (isLogged && method === 'eth_sendRawTransaction' ? { kind: 'reset' } : undefined);
    const first = opened.relayer({ rpcUrl: proxy.url });
    await until(() => isLogged);
    await first.stop();
    const [logged] = opened.forum.facts(type);
    opened.relayer();
    await expectOnce();
    const { commits, deployments } = await onChain(opened, 1);
    expect([...commits, ...deployments]).toContain(logged?.txHash);
  },
);

test('relayers killed at random, over a bad RPC and a bad disk, leave one transaction for each job', async () => {
  await open();
  const { SEED } = process.env;
  const seed = Number(SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = new Random(seed);
  for (let chamberId = 2; chamberId <= 8; chamberId++) {
    addChamber(opened.forum, chamberId, [{ ticker: 'T', backers: 2 }], { closesInMillis: chamberId * 200 });
  }
  opened.forum.beforeRecord = (_fact: ServiceFact) => {
    if (random.chance(0.1)) throw new Error('the disk is full');
  };
  proxy.fault = () => (random.chance(0.1) ? { kind: random.pick(['reset', 'lost']) } : undefined);
  const end = performance.now() + 4_000;
  while (performance.now() < end) {
    const relayer = opened.relayer({ rpcUrl: proxy.url });
    await new Promise((resolve) => setTimeout(resolve, random.below(250)));
    await relayer.stop();
  }
  opened.forum.beforeRecord = () => {};
  opened.relayer();
  await expectOnce(`seed ${seed}`);
});

/** Expects every chamber to be settled, and each job to have one transaction, the same in the log and on the chain. */
async function expectOnce(hint = ''): Promise<void> {
  const { forum } = opened;
  await until(() => isSettled(forum));
  for (const [chamberId, events] of forum.events) {
    const submitted = events.filter((event) => event.type === 'relay.commit_submitted');
    const deploys = events.filter((event) => event.type === 'relay.deploy_submitted');
    const ideas = deploys.map(({ payload }) => payload.ideaId);
    expect(new Set(ideas).size, hint).toBe(ideas.length);
    expect(await onChain(opened, chamberId), hint).toEqual({
      commits: submitted.map(({ payload }) => payload.txHash),
      deployments: deploys.map(({ payload }) => payload.txHash),
    });
  }
  expect(forum.facts('chamber.committed'), hint).toHaveLength(forum.events.size);
  expect(forum.facts('idea.deploy_failed'), hint).toEqual([]);
}
