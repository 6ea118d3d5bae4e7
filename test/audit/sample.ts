// The sample logs: a chamber from creation to its tokens, and one with rounds. The real service plays them with fixed keys,
// nonces and times, so that they are reproducible byte for byte. `npm test -- sample -u` writes all sample files to
// fixtures/logs.
import { encodeFunctionData, type Hex, keccak256, parseAbi } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { parseKeys, type ServiceKeys, withNewKeys } from '../../src/keys/service-keys.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, registrationOf, TestService } from '../kit/test-service.ts';

export const CHAMBER_ID = 1;
const WALLETS = [
  '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
  '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
  '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc',
];

const signerOf = (digit: number) => new Signer(Buffer.alloc(32, digit));
export const ANN = signerOf(1);
export const BOB = signerOf(2);
export const CAT = signerOf(3);

/** The members' allocations; CAT commits and never reveals. */
export const ALLOCATIONS = {
  ann: allocationOf(CHAMBER_ID, ANN, { 'idea-1': 6_000, 'idea-2': 4_000 }),
  bob: allocationOf(CHAMBER_ID, BOB, { 'idea-2': 1, 'idea-1': 2_500, 'idea-3': 0 }),
  cat: allocationOf(CHAMBER_ID, CAT, { 'idea-3': 10_000 }),
};

/** Returns fixed service keys, so that samples are reproducible. */
export function fixedKeys(logId: string): ServiceKeys {
  const [receipts, checkpoints] = [4, 5].map((digit) => `0x${Buffer.alloc(32, digit).toString('hex')}`) as [
    string,
    string,
  ];
  return parseKeys(withNewKeys(undefined, { logId, seeds: { receipts, checkpoints }, now: START, until: START }));
}

export interface Sample {
  readonly lines: readonly string[];
  readonly expected: Readonly<Record<'preview' | 'chamber' | 'ideas' | 'allocations', unknown>>;
}

export async function playSample(): Promise<Sample> {
  const service = await openService();
  await playMoves(moverOf(service));
  service.clock.set(START + 5 * HOUR);
  await playRelay(service);
  return sampleOf(service);
}

/** Plays a chamber with rounds: each phase ends with its last possible event or turn. */
export async function playPacedSample(): Promise<Sample> {
  const service = await openService();
  await playRounds(moverOf(service));
  const commit = await signedCommit(service, { nonce: 7, fee: 100n });
  await record(service, { type: 'relay.commit_submitted', payload: commit });
  await recordCommitted(service, { txHash: commit.txHash, committedAt: toTimestamp(service.clock.read()) });
  return sampleOf(service);
}

export async function openService(members: readonly Signer[] = [ANN, BOB, CAT]): Promise<TestService> {
  const service = new TestService({ keys: fixedKeys });
  for (const [index, signer] of members.entries()) {
    const body = { ...registrationOf(signer), walletAddress: WALLETS[index] };
    await service.must('POST', '/register', { body });
  }
  return service;
}

export async function sampleOf(service: TestService): Promise<Sample> {
  const read = (path: string) => service.must('GET', `/chambers/${CHAMBER_ID}${path}`);
  const [root, chamber] = [await preview(service), await read('')];
  const expected = { preview: root, chamber, ideas: await read('/ideas'), allocations: await read('/allocations') };
  return { lines: await service.lines(CHAMBER_ID), expected };
}

export type Move = (hour: number, by: Signer, path: string, body?: object, method?: string) => Promise<void>;

/** Makes moves a second apart, each no earlier than its hour. */
export function moverOf(service: TestService, base = '/chambers'): Move {
  let count = 0;
  return async (hour, by, path, body, method = 'POST') => {
    count++;
    service.clock.set(Math.max(service.clock.read() + 1_000, START + hour * HOUR));
    const text = body === undefined ? undefined : JSON.stringify(body);
    const parts = { method, url: PUBLIC_URL + base + path, body: text, created: service.clock.seconds };
    const type = text === undefined ? {} : { 'content-type': 'application/json' };
    const headers = { ...by.sign({ ...parts, nonce: `nonce-${count}` }), ...type };
    const answer = await service.send({ method, path: base + path, body: text, headers });
    if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  };
}

const DESCRIPTION = 'Shared “bins”, \u2028 and ☘.';

async function playMoves(move: Move): Promise<void> {
  const name = 'A garden of ideas';
  await move(0, ANN, '', { name, ...deadlinesFrom(START), minBackersForGraduation: 2, turnSeconds: 1_800 });
  for (const member of [ANN, BOB, CAT]) await move(0, member, '/1/join', member === BOB ? {} : undefined);
  await move(1, ANN, '/1/propose', { name: 'Compost for all', ticker: 'SOIL', description: DESCRIPTION });
  await move(1, ANN, '/1/pass');
  await move(1, BOB, '/1/propose', { name: 'Rain barrels', ticker: 'rain.1', description: '' });
  await move(1, BOB, '/1/propose', { name: 'A wall', ticker: 'WALL' });
  await move(2, ANN, '/1/debate', {
    ideaId: 'idea-1',
    comment: 'Worms first.',
    refinement: { budget: '12', steps: [1, 2.5, null] },
  });
  await move(2, ANN, '/1/pass', {});
  // BOB's half-hour turn times out, so the turn passes to CAT.
  await move(2.6, CAT, '/1/debate', { comment: 'No walls.\n\u0001 "quoted"' });
  await move(3, ANN, '/1/allocate/commit', ALLOCATIONS.ann.commit);
  await move(3, BOB, '/1/allocate/commit', ALLOCATIONS.bob.commit);
  await move(3, CAT, '/1/allocate/commit', ALLOCATIONS.cat.commit);
  await move(4, BOB, '/1/allocate/reveal', ALLOCATIONS.bob.reveal);
  await move(4, ANN, '/1/allocate/reveal', ALLOCATIONS.ann.reveal);
}

/** No idea graduates. CAT's turn in the second round of PROPOSAL times out; DEBATE ends after three consecutive silent turns. */
async function playRounds(move: Move): Promise<void> {
  const pace = { rounds: { proposal: 2, debate: 3 }, turnSeconds: 60, movesPerTurn: 1 };
  await move(0, ANN, '', {
    name: 'A quick garden',
    ...deadlinesFrom(START),
    ...pace,
    maxMembers: 4,
    minBackersForGraduation: 3,
  });
  for (const member of [ANN, BOB, CAT]) await move(0, member, '/1/join', {});
  await move(0, ANN, '/1/start', {});
  await move(0, ANN, '/1/propose', { name: 'Compost for all', ticker: 'SOIL', description: DESCRIPTION });
  await move(0, ANN, '/1/pass', {});
  await move(0, BOB, '/1/propose', { name: 'Rain barrels', ticker: 'RAIN' });
  await move(0, BOB, '/1/pass', {});
  await move(0, CAT, '/1/pass', {});
  await move(0, ANN, '/1/propose', { name: 'A shed', ticker: 'SHED' });
  await move(0, ANN, '/1/pass', {});
  await move(0, BOB, '/1/pass', {});
  // CAT's one-minute turn times out, and PROPOSAL ends: it was the last turn of the second round.
  await move(0.025, ANN, '/1/debate', { ideaId: 'idea-2', comment: 'Barrels first.' });
  await move(0.025, ANN, '/1/pass', {});
  await move(0.025, BOB, '/1/debate', { comment: 'Agreed.' });
  await move(0.025, BOB, '/1/pass', {});
  // Three consecutive silent turns: CAT's, ANN's and BOB's.
  for (const member of [CAT, ANN, BOB]) await move(0.025, member, '/1/pass', {});
  await move(0.025, CAT, '/1/allocate/commit', ALLOCATIONS.cat.commit);
  await move(0.025, ANN, '/1/allocate/commit', ALLOCATIONS.ann.commit);
  await move(0.025, BOB, '/1/allocate/commit', ALLOCATIONS.bob.commit);
  await move(0.025, ANN, '/1/allocate/reveal', ALLOCATIONS.ann.reveal);
  await move(0.025, CAT, '/1/allocate/reveal', ALLOCATIONS.cat.reveal);
  await move(0.025, BOB, '/1/allocate/reveal', ALLOCATIONS.bob.reveal);
}

/** Records a commitment whose fee was raised once, a token, and a failed deployment. */
async function playRelay(service: TestService): Promise<void> {
  const first = await signedCommit(service, { nonce: 7, fee: 100n });
  const raised = await signedCommit(service, { nonce: 7, fee: 110n });
  await record(service, { type: 'relay.commit_submitted', payload: first });
  await record(service, { type: 'relay.commit_submitted', payload: raised });
  await recordCommitted(service, { txHash: raised.txHash, committedAt: '2030-01-01T05:00:04.000Z' });
  await recordToken(service, { name: 'Compost for all', ticker: 'SOIL', description: DESCRIPTION });
  await record(service, {
    type: 'idea.deploy_failed',
    payload: { ideaId: 'idea-2', txHash: null, reason: 'IdeaAlreadyDeployed(1, idea-2)' },
  });
}

/** Records the token of the first idea, with this text. */
export async function recordToken(service: TestService, text: IdeaText): Promise<void> {
  const token = await signed(FACTORY, deployment(text), { nonce: 8, fee: 100n });
  await record(service, { type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...token } });
  await record(service, {
    type: 'idea.deployed',
    payload: {
      ideaId: 'idea-1',
      tokenAddress: '0xa16E02E87b7454126E5E10d957A927A7F5B5d2be',
      txHash: token.txHash,
      graduatedAt: '2030-01-01T05:00:06.000Z',
    },
  });
}

/** Records the fact a second after the previous event. */
export async function record({ clock, forum }: TestService, fact: ServiceFact): Promise<void> {
  clock.advance(1_000);
  await forum.submit({ operation: 'record', chamberId: CHAMBER_ID, fact });
}

const preview = (service: TestService) => service.must('GET', `/chambers/${CHAMBER_ID}/merkle-preview`);

export async function signedCommit(service: TestService, terms: Terms): Promise<RelayTransaction> {
  const args = [BigInt(CHAMBER_ID), (await preview(service)).root] as const;
  return signed(REGISTRY, encodeFunctionData({ abi: ABI, functionName: 'commitChamber', args }), terms);
}

export async function recordCommitted(
  service: TestService,
  block: { readonly txHash: Hex; readonly committedAt: string },
) {
  const { root: merkleRoot, eventCount } = await preview(service);
  const payload = { merkleRoot, eventCount, ...block, blockNumber: 42 };
  await record(service, { type: 'chamber.committed', payload });
}

const ABI = parseAbi([
  'function commitChamber(uint256 chamberId, bytes32 root)',
  'struct Idea { uint256 chamberId; string ideaId; string name; string ticker; string description; address creator; }',
  'function deployIdea(Idea idea) returns (address token)',
]);
export const REGISTRY = '0x5FbDB2315678afecb367f032d93F642f64180aa3';
export const FACTORY = '0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512';
export const RELAYER = privateKeyToAccount(`0x${'42'.repeat(32)}`);

export interface IdeaText {
  readonly name: string;
  readonly ticker: string;
  readonly description: string;
}

export function deployment(text: IdeaText): Hex {
  const idea = { chamberId: 1n, ideaId: 'idea-1', ...text, creator: WALLETS[0] as Hex };
  return encodeFunctionData({ abi: ABI, functionName: 'deployIdea', args: [idea] });
}

interface Terms {
  readonly nonce: number;
  readonly fee: bigint;
  readonly chainId?: number;
  readonly value?: bigint;
}

export async function signed(to: Hex, data: Hex, { fee, ...terms }: Terms): Promise<RelayTransaction> {
  const { chainId = 31_337, nonce } = terms;
  const fees = { maxFeePerGas: fee, maxPriorityFeePerGas: fee, gas: 500_000n };
  const rawTransaction = await RELAYER.signTransaction({ type: 'eip1559', ...terms, chainId, to, data, ...fees });
  return { chainId, nonce, txHash: keccak256(rawTransaction), rawTransaction };
}
