// The auditor's own arithmetic against the service's: the same answers from other code.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { describe, expect, test } from 'vitest';
import { MerkleTreeJs } from '../../src/audit/merkle-root.ts';
import { leafOf } from '../../src/audit/sequence.ts';
import { appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../../src/crypto/merkle.ts';
import { toHex } from '../../src/vocabulary/values.ts';

test('the checks need nothing of Node but the digest of a body', async () => {
  const input = fileURLToPath(new URL('../../src/audit/chamber-audit.ts', import.meta.url));
  const bundle = await rolldown({ input, platform: 'browser', external: /^node:/, onLog: () => undefined });
  const { output } = await bundle.generate({ format: 'esm' });
  const chunks = output.filter((part) => part.type === 'chunk');
  const files = new Set(chunks.map(({ fileName }) => fileName));
  const imported = chunks.flatMap(({ imports }) => imports).filter((name) => !files.has(name));
  expect(new Set(imported)).toEqual(new Set(['node:crypto']));
  const own = chunks.flatMap(({ moduleIds }) => moduleIds).filter((path) => !path.includes('node_modules'));
  expect(own.filter((path) => /\bBuffer\b/.test(code(path)))).toEqual([]);
  const users = own.filter((path) => /'node:/.test(code(path)));
  expect(users.map((path) => basename(path))).toEqual(['content-digest.ts']);
});

/** Without comments. */
function code(path: string): string {
  return readFileSync(path, 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
}

describe('the root of the moves', () => {
  const BLOCK = 16_384;

  test('is the accumulator’s at every size, also where a block of leaves ends', () => {
    const compared = new Set([1, 2, 3, 5, 64, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 77]);
    const moves = new MerkleTreeJs();
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

  test('is of leaves that both hash alike', () => {
    const line = Buffer.from('{"eventId":1}');
    expect(leafOf(line)).toEqual(leafHash(line));
  });
});
