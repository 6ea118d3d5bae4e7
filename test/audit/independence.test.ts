// Compares the auditor's own Merkle arithmetic with the service's.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CrossCheckedTree } from '../../src/audit/chamber/cross-checked-tree.ts';
import { leafOf } from '../../src/audit/line/leaf.ts';
import { appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../../src/crypto/merkle.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { buffersHeld } from '../kit/memory-held.ts';
import { bundleCore } from './browser-core.ts';

test('the auditor’s core imports no Node modules and does not use Buffer', async () => {
  const { fileName, code, imports, dynamicImports, moduleIds } = await bundleCore();
  expect([...imports, ...dynamicImports].filter((name) => name !== fileName)).toEqual([]);
  expect(code).not.toMatch(/['"]node:/);
  const own = moduleIds.filter((path) => !/node_modules|\0/.test(path));
  expect(own.filter((path) => /\bBuffer\b/.test(codeOf(path)))).toEqual([]);
});

/** The code without comments. */
function codeOf(path: string): string {
  return readFileSync(path, 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
}

describe('the root of the moves', () => {
  const BLOCK = 1_024;

  test('auditor and accumulator compute equal roots at every size, including the end of a block of leaves', () => {
    const compared = new Set([1, 2, 3, 5, 64, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 77]);
    const moves = new CrossCheckedTree();
    let tree = EMPTY_TREE;
    for (let size = 1; size <= Math.max(...compared); size++) {
      const leaf = leafHash(Buffer.from(String(size)));
      moves.push(leaf);
      tree = appendLeaf(tree, leaf).tree;
      if (!compared.has(size)) continue;
      expect(moves.size).toBe(size);
      expect(moves.root(), `${size} leaves`).toBe(toHex(rootOf(tree)));
    }
  });

  test('the root of the moves takes constant memory', async () => {
    const moves = new CrossCheckedTree();
    const before = await buffersHeld();
    for (let size = 1; size <= 40 * BLOCK; size++) moves.push(new Uint8Array(32).fill(size));
    expect((await buffersHeld()) - before).toBeLessThan(1_000_000);
    expect(moves.size).toBe(40 * BLOCK);
  });

  test('auditor and service compute equal leaf hashes', () => {
    const line = Buffer.from('{"eventId":1}');
    expect(leafOf(line)).toEqual(leafHash(line));
  });
});
