// The sample log of a chamber that needs two members, whose ideas are amended, withdrawn, polled and replied to. It is reproducible.
import { allocationOf, deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import {
  ANN,
  BOB,
  CHAMBER_ID,
  type Move,
  moverOf,
  openService,
  record,
  recordCommitted,
  recordToken,
  type Sample,
  sampleOf,
  signedCommit,
} from './sample.ts';

export const ALLOCATIONS = {
  ann: allocationOf(CHAMBER_ID, ANN, { 'idea-1': 6_000, 'idea-3': 4_000 }),
  bob: allocationOf(CHAMBER_ID, BOB, { 'idea-1': 5_000 }),
};

/** The first idea's text when it becomes a token. */
export const AMENDED = { name: 'Compost for all', ticker: 'SOIL', description: 'Two bins a street, emptied weekly.' };

export async function playDebateSample(): Promise<Sample> {
  const service = await openService([ANN, BOB]);
  await play(moverOf(service));
  service.clock.set(START + 5 * HOUR);
  const commit = await signedCommit(service, { nonce: 7, fee: 100n });
  await record(service, { type: 'relay.commit_submitted', payload: commit });
  await recordCommitted(service, { txHash: commit.txHash, committedAt: '2030-01-01T05:00:04.000Z' });
  await recordToken(service, AMENDED);
  return sampleOf(service);
}

async function play(move: Move): Promise<void> {
  const numbers = { minBackersForGraduation: 2, minMembers: 2, movesPerTurn: 4 };
  await move(0, ANN, '', { name: 'A garden that listens', ...deadlinesFrom(START), ...numbers });
  for (const member of [ANN, BOB]) await move(0, member, '/1/join', {});
  await move(1, ANN, '/1/propose', { name: 'Compost for all', ticker: 'SOIL', description: 'Bins.' });
  await move(1, ANN, '/1/propose', { name: 'Compost for everybody', ticker: 'SOIL2' });
  await move(1, ANN, '/1/withdraw', { ideaId: 'idea-2' });
  await move(1, ANN, '/1/pass', {});
  await move(1, BOB, '/1/propose', { name: 'Rain barrels', ticker: 'RAIN' });
  await move(1, BOB, '/1/pass', {});
  await move(2, ANN, '/1/debate', { ideaId: 'idea-3', comment: 'Who fills them?', stance: 'against', replyTo: 8 });
  await move(2, ANN, '/1/amend', { ideaId: 'idea-1', description: AMENDED.description });
  await move(2, ANN, '/1/pass', {});
  await move(2, BOB, '/1/debate', { ideaId: 'idea-1', comment: 'Weekly it is.', stance: 'for', replyTo: 11 });
  await move(2, BOB, '/1/amend', { ideaId: 'idea-3', name: 'Rain barrels with taps', description: 'The roof does.' });
  await move(2, BOB, '/1/pass', {});
  await move(2, ANN, '/1/debate', { ideaId: 'idea-3', comment: 'Better.', stance: 'undecided', replyTo: 14 });
  await move(3, ANN, '/1/allocate/commit', ALLOCATIONS.ann.commit);
  await move(3, BOB, '/1/allocate/commit', ALLOCATIONS.bob.commit);
  await move(4, BOB, '/1/allocate/reveal', ALLOCATIONS.bob.reveal);
  await move(4, ANN, '/1/allocate/reveal', ALLOCATIONS.ann.reveal);
}
