// Small scenarios that together cover every invariant of the pipeline: two nodes, four commands or reads, one or two streams.
import { allocationOf } from '../../kit/chambers.ts';
import { HOUR, START } from '../../kit/clock.ts';
import { agentsNamed, creation, move, personality, proposal, registration, retirement } from './cast.ts';
import type { AskedCommand, Stream } from './history.ts';
import type { Sent } from './world.ts';

export interface Scenario {
  readonly name: string;
  readonly sends: readonly Sent[];
  /** The streams in the memory of both nodes at the start. */
  readonly warm: readonly Stream[];
  readonly openChambersPerDidMax?: number;
}

const [ANN, BOB] = agentsNamed(['Ann', 'Bob']) as [
  ReturnType<typeof agentsNamed>[0],
  ReturnType<typeof agentsNamed>[0],
];
const [A, B] = [0, 1];

const ROUNDS = { rounds: { proposal: 1, debate: 1 }, turnSeconds: 7_200, maxMembers: 2 };
/** The lobby ends when both agents have joined. */
const [IN_TURNS, IN_COMMITS] = [3, 4];

/**
 * Two chambers in PROPOSAL in which Ann has the first turn, and two chambers with rounds: one in Bob's turn, the last of PROPOSAL, and one
 * in ALLOCATE_COMMIT.
 */
export const PAST: readonly { readonly at: number; readonly ask: AskedCommand }[] = [
  { at: START, ask: registration('ann', ANN, { wallet: 'a', isHidden: true }) },
  { at: START, ask: registration('bob', BOB, { wallet: 'b', isHidden: true }) },
  ...[1, 2].flatMap((chamberId) => [
    { at: START, ask: creation(`chamber ${chamberId}`, ANN) },
    { at: START, ask: move('join', `ann joins ${chamberId}`, ANN, chamberId) },
    { at: START, ask: move('join', `bob joins ${chamberId}`, BOB, chamberId) },
  ]),
  ...[IN_TURNS, IN_COMMITS].flatMap((chamberId) => [
    { at: START, ask: creation(`chamber ${chamberId}`, BOB, { pace: ROUNDS }) },
    { at: START, ask: move('join', `ann joins ${chamberId}`, ANN, chamberId) },
    { at: START, ask: move('join', `bob joins ${chamberId}`, BOB, chamberId) },
    { at: START, ask: pass(ANN, `ann passes ${chamberId}`, chamberId) },
  ]),
  { at: START, ask: pass(BOB, 'bob ends PROPOSAL', IN_COMMITS) },
  { at: START, ask: pass(ANN, 'ann passes in DEBATE', IN_COMMITS) },
  { at: START, ask: pass(BOB, 'bob ends DEBATE', IN_COMMITS) },
];
export const NOW = START + HOUR;

const WARM: readonly Stream[] = [1, ANN.did, BOB.did];

function at(node: number, id: string, ask: Sent['ask'], after: readonly string[] = []): Sent {
  return { id, node, ask, after };
}

function pass(agent: typeof ANN, signature: string, chamberId = 1): AskedCommand {
  return move('pass', signature, agent, chamberId);
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'turns of one chamber at two nodes',
    warm: WARM,
    sends: [
      at(A, 'ann passes', pass(ANN, 's1')),
      at(A, 'bob proposes', move('propose', 's2', BOB, 1, proposal('SUN'))),
      at(B, 'bob passes', pass(BOB, 's3')),
      at(B, 'ann proposes', move('propose', 's4', ANN, 1, proposal('SEA'))),
    ],
  },
  {
    name: 'one signed request at both nodes',
    warm: WARM,
    sends: [
      at(A, 'ann passes', pass(ANN, 's1')),
      at(B, 'ann passes, retried at B', pass(ANN, 's1')),
      at(B, 'bob passes', pass(BOB, 's2')),
      at(A, 'ann passes, retried at A', pass(ANN, 's1')),
    ],
  },
  {
    name: 'an account changes while its agent moves',
    warm: [...WARM, 2],
    sends: [
      at(A, 'ann registers again', registration('r1', ANN, { wallet: 'c', isHidden: true })),
      at(A, 'ann proposes at A', move('propose', 's1', ANN, 1, proposal('SUN'))),
      at(B, 'ann changes', personality('s2', ANN, 'warm')),
      at(B, 'ann proposes at B', move('propose', 's3', ANN, 2, proposal('SEA'))),
    ],
  },
  {
    name: 'a key is retired while its agent moves',
    warm: [...WARM, 2],
    sends: [
      at(A, 'ann retires', retirement('s1', ANN)),
      at(A, 'ann proposes at A', move('propose', 's2', ANN, 1, proposal('SUN'))),
      at(B, 'ann changes', personality('s3', ANN, 'warm')),
      at(B, 'ann proposes at B', move('propose', 's4', ANN, 2, proposal('SEA'))),
    ],
  },
  {
    name: 'a registration is repeated while it changes',
    warm: WARM,
    sends: [
      at(A, 'ann passes', pass(ANN, 's1')),
      at(A, 'ann repeats', registration('r1', ANN, { wallet: 'a', isHidden: true })),
      at(B, 'ann registers again', registration('r2', ANN, { wallet: 'c', isHidden: true })),
      at(A, 'ann repeats, retried', registration('r1', ANN, { wallet: 'a', isHidden: true })),
    ],
  },
  {
    name: 'creations of one agent up to its limit',
    warm: [ANN.did],
    openChambersPerDidMax: 3,
    sends: [
      at(A, 'ann creates first', creation('s1', ANN, { from: NOW })),
      at(A, 'ann creates second', creation('s2', ANN, { from: NOW })),
      at(B, 'ann creates third', creation('s3', ANN, { from: NOW })),
    ],
  },
  {
    name: 'reads beside moves',
    warm: WARM,
    sends: [
      at(A, 'ann passes', pass(ANN, 's1')),
      at(A, 'read at A', { stream: 1 }),
      at(B, 'bob passes', pass(BOB, 's2')),
      at(B, 'read at B', { stream: 1 }),
    ],
  },
  {
    name: 'moves of two chambers in one batch',
    warm: [...WARM, 2],
    sends: [
      at(A, 'ann passes in 1', pass(ANN, 's1')),
      at(A, 'ann passes in 2', pass(ANN, 's2', 2)),
      at(A, 'bob passes in 2', pass(BOB, 's3', 2)),
      at(B, 'ann proposes in 2', move('propose', 's4', ANN, 2, proposal('SUN'))),
    ],
  },
  {
    name: 'the pass that ends a phase, and the next move',
    warm: [IN_TURNS, ANN.did, BOB.did],
    sends: [
      at(A, 'bob ends PROPOSAL', pass(BOB, 's1', IN_TURNS)),
      at(B, 'ann debates', move('debate', 's2', ANN, IN_TURNS, { comment: 'first' })),
      at(A, 'bob proposes', move('propose', 's3', BOB, IN_TURNS, proposal('SUN'))),
      at(B, 'ann passes', pass(ANN, 's4', IN_TURNS)),
    ],
  },
  {
    name: 'the commit that ends ALLOCATE_COMMIT, beside another',
    warm: [IN_COMMITS, ANN.did, BOB.did],
    sends: [
      at(A, 'ann commits', allocate('commit', 's1', ANN)),
      at(B, 'bob commits', allocate('commit', 's2', BOB)),
      at(A, 'ann reveals', allocate('reveal', 's3', ANN)),
      at(B, 'bob reveals', allocate('reveal', 's4', BOB)),
    ],
  },
];

function allocate(operation: 'commit' | 'reveal', signature: string, agent: typeof ANN): AskedCommand {
  return move(operation, signature, agent, IN_COMMITS, allocationOf(IN_COMMITS, agent)[operation]);
}
