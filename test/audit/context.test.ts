// The state shared by the audits of a log's chambers.
import { describe, expect, test } from 'vitest';
import { BlockHeights, Candidates, Subjects } from '../../src/audit/context.ts';
import type { Hex } from '../../src/vocabulary/values.ts';

const hashOf = (index: number): Hex => `0x${index.toString(16).padStart(64, '0')}`;
const COMMITMENT = { chamberId: 1, ideaId: undefined };
const IDEA = { chamberId: 1, ideaId: 'idea-2' };

describe('the transactions of a log', () => {
  test('a transaction belongs to the commitment or idea that named it first', () => {
    const subjects = new Subjects();
    expect(subjects.conflict(hashOf(1), COMMITMENT)).toBeUndefined();
    expect(subjects.conflict(hashOf(1), COMMITMENT)).toBeUndefined();
    expect(subjects.of(hashOf(1), IDEA)).toEqual(COMMITMENT);
    expect(subjects.conflict(hashOf(1), { ...COMMITMENT, chamberId: 2 })).toEqual(COMMITMENT);
    expect(subjects.conflict(hashOf(2), IDEA)).toBeUndefined();
    expect(subjects.of(hashOf(2), COMMITMENT)).toEqual(IDEA);
  });

  test('all transactions are remembered', () => {
    const subjects = new Subjects();
    for (let index = 1; index <= 100_001; index++) subjects.conflict(hashOf(index), { ...IDEA, chamberId: index });
    expect(subjects.of(hashOf(1), COMMITMENT)).toEqual(IDEA);
  });
});

test.each([0, 41, 4_294_967_294, 4_294_967_295, 5_000_000_000, Number.MAX_SAFE_INTEGER])(
  'a block hash has only one height: %s',
  (blockNumber) => {
    const heights = new BlockHeights();
    const block = { blockHash: hashOf(1), blockNumber };
    expect([heights.problemOf(block), heights.problemOf(block)]).toEqual([undefined, undefined]);
    expect(heights.problemOf({ ...block, blockHash: hashOf(2) })).toBeUndefined();
    for (const other of [blockNumber === 0 ? 1 : blockNumber - 1, 4_294_967_293])
      expect(heights.problemOf({ ...block, blockNumber: other })).toBe(
        `names ${hashOf(1)} as block ${other}, but another line names it as block ${blockNumber}`,
      );
  },
);

describe('a factory', () => {
  test.each([
    ['given', ['0xre'], []],
    ['found in earlier lines', [], ['0xre']],
  ])('the address of a registry that is %s is not a factory, even if it is given as one', (_, given, found) => {
    const registries = new Candidates('registries', '--registry', given);
    for (const address of found) registries.take(address);
    for (const factories of [[], ['0xfa'], ['0xfa', '0xre']]) {
      const candidates = new Candidates('factories', '--factory', factories, registries);
      expect([candidates.take('0xre'), candidates.take('0xfa'), candidates.found]).toEqual([false, true, ['0xfa']]);
    }
  });
});
