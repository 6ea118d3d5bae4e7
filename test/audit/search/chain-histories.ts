// Honest histories on a real chain, against which the auditor checks forgeries: a token, a failed deployment, and members who must hold a
// token.
import { vi } from 'vitest';
import { AuditedChain } from '../../../src/audit/chain/chain-reader.ts';
import { compareChain } from '../../../src/audit/chain/compare-chain.ts';
import { judgeContractProof } from '../../../src/audit/chain/contract-signatures.ts';
import { Agent, ForumClient } from '../../../src/client/index.ts';
import { type LiveService, newChamber, PHASE_MILLIS } from '../../client/live-service.ts';
import { advanceChain } from '../../client/play-chamber.ts';
import { walletOf } from '../../kit/wallets.ts';
import { type Line, parse } from '../forge.ts';
import { payloadOf } from '../forgeries.ts';
import type { History } from './histories.ts';

const EMAIL = { operatorEmail: 'agent@example.org' };
const NO_WALLET = `0x${'0'.repeat(40)}`;

export async function playOnChain(live: LiveService): Promise<readonly History[]> {
  const client = () => new ForumClient(live.baseUrl, live.sharedTime);
  const [ann, bob] = [Agent.generate(client()), Agent.generate(client())];
  await ann.register({ ...EMAIL, wallet: walletOf(7) });
  await bob.register({ ...EMAIL, walletAddress: NO_WALLET });
  const deployed = await settle(live, ann, 'idea.deployed');
  const failed = await settle(live, bob, 'idea.deploy_failed');
  const address = String(payloadOf(deployed.find(({ type }) => type === 'idea.deployed') ?? {})['tokenAddress']);
  const { chamberId } = await ann.createChamber({
    ...newChamber(live.now()),
    admission: { token: { address, minBalance: '1', at: 'join' } },
  });
  await ann.joinChamber(chamberId);
  const accounts = new Map([[ann.did, await linesAt(live, `/agents/${ann.did}/events`)]]);
  const { chain } = await live.forum.health();
  if (!chain?.rpcUrl) throw new Error('no chain');
  const { rpcUrl, registryAddress, factoryAddress } = chain;
  // The service's clock runs ahead of the chain's.
  const policy = { registries: [registryAddress], factories: [factoryAddress], maxSkewSeconds: 86_400 };
  const audited = new AuditedChain(rpcUrl, [registryAddress]);
  const onChain: Pick<History, 'policy' | 'askChain' | 'judgeProof'> = {
    policy,
    askChain: async (audit) => await compareChain(audit, audited, audit.decisions.state?.chamberId),
    judgeProof: async (proof) => await judgeContractProof(proof, { chain: audited, policy }),
  };
  return [
    { name: 'a token on a chain', lines: deployed, ...onChain },
    { name: 'a deployment that failed on a chain', lines: failed, ...onChain },
    { name: 'balances on a chain', lines: await linesAt(live, `/chambers/${chamberId}/events`), accounts, ...onChain },
  ];
}

/** Plays a chamber with one member and one idea until its outcome is recorded. */
async function settle(live: LiveService, by: Agent, outcome: string): Promise<readonly Line[]> {
  const { chamberId } = await by.createChamber(newChamber(live.now()));
  await by.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await by.propose(chamberId, { name: 'Idea', ticker: 'IDEA' });
  live.advance(2 * PHASE_MILLIS);
  await by.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  live.advance(PHASE_MILLIS);
  await by.reveal(chamberId);
  await advanceChain(live);
  live.advance(PHASE_MILLIS);
  const lines = () => linesAt(live, `/chambers/${chamberId}/events`);
  const isOver = async () => (await lines()).some(({ type }) => type === outcome);
  await vi.waitUntil(isOver, { timeout: 30_000, interval: 200 });
  return await lines();
}

async function linesAt(live: LiveService, path: string): Promise<readonly Line[]> {
  const text = await (await fetch(live.baseUrl + path)).text();
  return parse(text.trimEnd().split('\n'));
}
