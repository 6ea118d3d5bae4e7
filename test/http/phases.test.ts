// Every move in every phase, by every kind of caller (specification, States and transitions).
import { describe, expect, it } from 'vitest';
import { type ChamberMoveOperation, chamberMoves } from '../../src/moves/registry.ts';
import type { Phase } from '../../src/vocabulary/values.ts';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { TestService } from '../kit/test-service.ts';

// CLOSED is ALLOCATE_REVEAL after its deadline. The holder is the member in turn, or the first member if there are no turns.
const TABLE = `
  operation  phase            unsigned   outsider  member    holder
  join       LOBBY            SIGNATURE  200       CONFLICT  CONFLICT
  join       PROPOSAL         SIGNATURE  PHASE     PHASE     PHASE
  join       DEBATE           SIGNATURE  PHASE     PHASE     PHASE
  join       ALLOCATE_COMMIT  SIGNATURE  PHASE     PHASE     PHASE
  join       ALLOCATE_REVEAL  SIGNATURE  PHASE     PHASE     PHASE
  join       CLOSED           SIGNATURE  PHASE     PHASE     PHASE
  join       COMMITTED        SIGNATURE  PHASE     PHASE     PHASE
  propose    LOBBY            SIGNATURE  PHASE     PHASE     PHASE
  propose    PROPOSAL         SIGNATURE  MEMBER    TURN      200
  propose    DEBATE           SIGNATURE  PHASE     PHASE     PHASE
  propose    ALLOCATE_COMMIT  SIGNATURE  PHASE     PHASE     PHASE
  propose    ALLOCATE_REVEAL  SIGNATURE  PHASE     PHASE     PHASE
  propose    CLOSED           SIGNATURE  PHASE     PHASE     PHASE
  propose    COMMITTED        SIGNATURE  PHASE     PHASE     PHASE
  debate     LOBBY            SIGNATURE  PHASE     PHASE     PHASE
  debate     PROPOSAL         SIGNATURE  PHASE     PHASE     PHASE
  debate     DEBATE           SIGNATURE  MEMBER    TURN      200
  debate     ALLOCATE_COMMIT  SIGNATURE  PHASE     PHASE     PHASE
  debate     ALLOCATE_REVEAL  SIGNATURE  PHASE     PHASE     PHASE
  debate     CLOSED           SIGNATURE  PHASE     PHASE     PHASE
  debate     COMMITTED        SIGNATURE  PHASE     PHASE     PHASE
  pass       LOBBY            SIGNATURE  PHASE     PHASE     PHASE
  pass       PROPOSAL         SIGNATURE  MEMBER    TURN      200
  pass       DEBATE           SIGNATURE  MEMBER    TURN      200
  pass       ALLOCATE_COMMIT  SIGNATURE  PHASE     PHASE     PHASE
  pass       ALLOCATE_REVEAL  SIGNATURE  PHASE     PHASE     PHASE
  pass       CLOSED           SIGNATURE  PHASE     PHASE     PHASE
  pass       COMMITTED        SIGNATURE  PHASE     PHASE     PHASE
  commit     LOBBY            SIGNATURE  PHASE     PHASE     PHASE
  commit     PROPOSAL         SIGNATURE  PHASE     PHASE     PHASE
  commit     DEBATE           SIGNATURE  PHASE     PHASE     PHASE
  commit     ALLOCATE_COMMIT  SIGNATURE  MEMBER    200       200
  commit     ALLOCATE_REVEAL  SIGNATURE  PHASE     PHASE     PHASE
  commit     CLOSED           SIGNATURE  PHASE     PHASE     PHASE
  commit     COMMITTED        SIGNATURE  PHASE     PHASE     PHASE
  reveal     LOBBY            SIGNATURE  PHASE     PHASE     PHASE
  reveal     PROPOSAL         SIGNATURE  PHASE     PHASE     PHASE
  reveal     DEBATE           SIGNATURE  PHASE     PHASE     PHASE
  reveal     ALLOCATE_COMMIT  SIGNATURE  PHASE     PHASE     PHASE
  reveal     ALLOCATE_REVEAL  SIGNATURE  MEMBER    200       200
  reveal     CLOSED           SIGNATURE  PHASE     PHASE     PHASE
  reveal     COMMITTED        SIGNATURE  PHASE     PHASE     PHASE
`;

type Operation = ChamberMoveOperation;
type When = Phase | 'CLOSED';
const STATUS = { SIGNATURE: 401, PHASE: 403, TURN: 403, MEMBER: 403, CONFLICT: 409 } as const;
type Outcome = '200' | keyof typeof STATUS;
type Row = readonly [Operation, When, Outcome, Outcome, Outcome, Outcome];

const rows = TABLE.trim()
  .split('\n')
  .slice(1)
  .map((line) => line.trim().split(/ +/) as unknown as Row);

describe('a move', () => {
  it.each(rows)(
    'the move %s in %s returns %s, %s, %s, %s',
    async (operation, when, unsigned, nonMember, member, holder) => {
      const service = new TestService();
      const [first, second, outsider] = [await service.agent(), await service.agent(), await service.agent()];
      const chamberId = await openChamber(service, [first, second]);
      if (operation === 'reveal') await commitBoth(service, chamberId, { when, members: [first, second] });
      await enter(service, chamberId, when);
      const outcomes = [];
      for (const by of [undefined, outsider, second, first]) {
        const body = bodyOf(operation, chamberId, by ?? first);
        const answer = await service.request('POST', chamberMoves[operation].path.replace(':id', String(chamberId)), {
          by,
          body,
        });
        outcomes.push([answer.status, answer.body.error]);
      }
      expect(outcomes).toEqual([unsigned, nonMember, member, holder].map(expectation));
    },
  );
});

function expectation(outcome: Outcome): readonly [number, string | undefined] {
  return outcome === '200' ? [200, undefined] : [STATUS[outcome], `FORUM_ERR_${outcome}`];
}

async function enter(service: TestService, chamberId: number, when: When): Promise<void> {
  if (when === 'LOBBY') return;
  await enterPhase(service, chamberId, when === 'CLOSED' ? 'ALLOCATE_REVEAL' : when);
  if (when === 'CLOSED') service.clock.advance(HOUR);
}

const REVEALING: readonly When[] = ['ALLOCATE_REVEAL', 'CLOSED', 'COMMITTED'];

/** Rows about later phases need a commitment. */
async function commitBoth(
  service: TestService,
  chamberId: number,
  { when, members }: { readonly when: When; readonly members: readonly Signer[] },
): Promise<void> {
  if (!REVEALING.includes(when)) return;
  await enterPhase(service, chamberId, 'ALLOCATE_COMMIT');
  for (const by of members) {
    await service.must('POST', `/chambers/${chamberId}/allocate/commit`, { by, body: bodyOf('commit', chamberId, by) });
  }
}

function bodyOf(operation: Operation, chamberId: number, by: Signer): unknown {
  switch (operation) {
    case 'join':
    case 'pass':
      return undefined;
    case 'admit':
      return { did: by.did };
    case 'propose':
      return { name: 'Idea', ticker: 'ABC', description: '' };
    case 'debate':
      return { comment: 'hm' };
    case 'start':
      return {};
    case 'amend':
      return { ideaId: 'idea-1', name: 'Another' };
    case 'withdraw':
      return { ideaId: 'idea-1' };
    case 'commit':
    case 'reveal':
      return allocationOf(chamberId, by)[operation];
    default:
      throw new Error(`unknown operation ${operation satisfies never}`);
  }
}
