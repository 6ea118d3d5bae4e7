import { describe, expect, test } from 'vitest';
import { UsedValues } from '../../src/audit/line/used-values.ts';
import { Random } from '../kit/random.ts';

const random = new Random(11);
const signatures = Array.from({ length: 3_000 }, () => Uint8Array.from({ length: 64 }, () => random.below(256)));
const [first] = signatures as [Uint8Array, ...Uint8Array[]];

describe('signatures of a log', () => {
  test('each of many signatures is attributed to the event that used it first', () => {
    const set = new UsedValues();
    expect(signatures.map((signature, index) => set.add(signature, index + 1, 0)).filter(Boolean)).toEqual([]);
    const known = signatures.map((signature, index) => set.add(signature, 5_000 + index, 0));
    expect(known).toEqual(signatures.map((_, index) => index + 1));
  });

  test('signatures that differ in one bit are distinct', () => {
    const set = new UsedValues();
    set.add(first, 1, 0);
    for (let bit = 0; bit < 512; bit++) {
      const other = first.slice();
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(set.add(other, 2, 0)).toBeUndefined();
    }
    expect(set.add(first, 3, 0)).toBe(1);
  });

  test('signatures are remembered for the whole horizon, and then forgotten', () => {
    const set = new UsedValues(1_000);
    set.add(first, 1, 0);
    const other = new Uint8Array(64);
    const words = new DataView(other.buffer);
    for (let index = 1; index <= TABLE_SIGNATURES; index++) {
      words.setUint32(0, index);
      set.add(other, 2, index < TABLE_SIGNATURES ? 1 : 2);
    }
    expect(set.add(first, 3, 1_001)).toBe(1);
    expect(set.add(first, 4, 1_002)).toBeUndefined();
  });
});

/** All signatures of a table are forgotten together. */
const TABLE_SIGNATURES = 73_728;
