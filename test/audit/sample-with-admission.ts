// The sample log of a chamber that restricts admission, with its members' accounts: proven wallets, a token, an admission, and
// retired keys. It is reproducible.
import type { ChainAnswer, ChainQuestion } from '../../src/moves/chain-question.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';
import { provenRegistration, retirementBy, walletOf } from '../kit/wallets.ts';
import {
  ANN,
  BOB,
  CHAMBER_ID,
  fixedKeys,
  moverOf,
  record,
  recordCommitted,
  type Sample,
  sampleOf,
  signedCommit,
} from './sample.ts';

export const TOKEN = `0x${'70'.repeat(20)}`;
const BLOCK = { blockNumber: 4_242, blockHash: `0x${'b1'.repeat(32)}` } as const;
/** ANN proves FIRST before she joins and THIRD before she proposes; BOB proves SECOND. */
export const [FIRST, SECOND, THIRD] = [walletOf(1), walletOf(2), walletOf(3)] as const;

interface SampleWithAccounts extends Sample {
  readonly accounts: readonly string[];
}

export async function playAdmissionSample(): Promise<SampleWithAccounts> {
  const service = new TestService({ keys: fixedKeys });
  // Every wallet holds 7 tokens at the admission block, so no chain is needed.
  service.forum.useChain({ answer: async (question) => answerTo(question) });
  await play(service);
  const accounts = [...(await accountOf(service, ANN)), ...(await accountOf(service, BOB))];
  return { ...(await sampleOf(service)), accounts };
}

function answerTo({ kind }: ChainQuestion): ChainAnswer {
  if (kind === 'signature') return null;
  return kind === 'contract' ? { chainId: 31_337, ...BLOCK } : { ...BLOCK, balance: '7' };
}

async function accountOf(service: TestService, { did }: Signer): Promise<readonly string[]> {
  const { ndjson } = await service.log.readPage(did, 0, 100);
  return ndjson.toString().split('\n').slice(0, -1);
}

async function play(service: TestService): Promise<void> {
  const move = moverOf(service, '');
  const now = () => toTimestamp(service.clock.read());
  // Both agents register with an e-mail address, which the line omits, and then sign a registration without one.
  for (const by of [ANN, BOB]) await service.must('POST', '/register', { body: registrationOf(by) });
  await move(0, ANN, '/register', { ...(await provenRegistration(service, ANN, FIRST)), label: 'Ann' });
  await move(0, BOB, '/register', await provenRegistration(service, BOB, SECOND));
  const token = { address: TOKEN, minBalance: '5', at: 'creation' };
  const admission = { dids: [ANN.did], provenWallets: true, token };
  await move(0, ANN, '/chambers', { name: 'A closed garden', ...deadlinesFrom(START), admission });
  await move(0, ANN, '/chambers/1/admit', { did: BOB.did });
  for (const member of [ANN, BOB]) await move(0, member, '/chambers/1/join', {});
  service.clock.set(START + HOUR / 2);
  await move(0.5, ANN, '/register', await provenRegistration(service, ANN, THIRD));
  await move(1, ANN, '/chambers/1/propose', { name: 'Compost for all', ticker: 'SOIL' });
  await move(1, ANN, '/chambers/1/pass', {});
  await move(1.5, BOB, '/personality', { patch: { style: 'dry, and short' } }, 'PUT');
  await move(2, ANN, '/chambers/1/pass', {});
  await move(2, BOB, '/chambers/1/debate', { ideaId: 'idea-1', comment: 'Worms first.' });
  const allocations = [ANN, BOB].map((by) => [by, allocationOf(CHAMBER_ID, by, { 'idea-1': 6_000 })] as const);
  for (const [by, { commit }] of allocations) await move(3, by, '/chambers/1/allocate/commit', commit);
  for (const [by, { reveal }] of allocations) await move(4, by, '/chambers/1/allocate/reveal', reveal);
  await move(4.5, ANN, '/me/retire', {});
  service.clock.set(START + 4.5 * HOUR + 60_000);
  const retirement = await retirementBy(SECOND, BOB.did, { issuedAt: now() });
  await service.must('POST', `/agents/${BOB.did}/retire`, { body: retirement });
  service.clock.set(START + 5 * HOUR);
  const sent = await signedCommit(service, { nonce: 7, fee: 100n });
  await record(service, { type: 'relay.commit_submitted', payload: sent });
  await recordCommitted(service, { txHash: sent.txHash, committedAt: '2030-01-01T05:00:04.000Z' });
}
