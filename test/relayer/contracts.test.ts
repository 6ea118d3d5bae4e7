import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type Abi, encodeErrorResult, toEventHash, toFunctionHash } from 'viem';
import { expect, test } from 'vitest';
import {
  FACTORY_ABI,
  QUORUM_FACTORY_ABI,
  QUORUM_REGISTRY_ABI,
  REGISTRY_ABI,
  RELAYED_ABI,
  revertReason,
} from '../../src/relayer/contracts.ts';

const folder = new URL('../../fixtures/contracts/', import.meta.url);

/** Returns the signature hash of each function, event and error. Those of events show which arguments are indexed. */
function hashes(abi: Abi): readonly string[] {
  return abi.flatMap((item) => {
    if (item.type === 'event') return [`${toEventHash(item)} ${item.inputs.map((input) => input.indexed ?? false)}`];
    if (item.type === 'function') return [toFunctionHash(item)];
    return item.type === 'error'
      ? [toFunctionHash({ ...item, type: 'function', outputs: [], stateMutability: 'view' })]
      : [];
  });
}

test.each([
  ['ChamberRegistry', [...REGISTRY_ABI, ...RELAYED_ABI]],
  ['IdeaFactory', [...FACTORY_ABI, ...RELAYED_ABI]],
  ['quorum/QuorumRegistry', QUORUM_REGISTRY_ABI],
  ['quorum/QuorumFactory', QUORUM_FACTORY_ABI],
] as const)('%s has the interface that the relayer uses', async (contract, abi) => {
  const artefact = JSON.parse(await readFile(new URL(`${contract}.json`, folder), 'utf8')) as { readonly abi: Abi };
  expect(hashes(artefact.abi)).toEqual(expect.arrayContaining([...hashes(abi)]));
});

test('the artifacts match the sources', async () => {
  const { stderr } = await promisify(execFile)(process.execPath, ['build.mjs', '--check'], { cwd: folder });
  expect(stderr).toBe('');
});

test.each([
  [
    'a named error',
    encodeErrorResult({ abi: FACTORY_ABI, errorName: 'IdeaAlreadyDeployed', args: [1n, 'idea-2'] }),
    'IdeaAlreadyDeployed(1, idea-2)',
  ],
  ['no data', '0x', 'reverted without a reason'],
  ['an unknown error', '0xdeadbeef', 'reverted with 0xdeadbeef'],
] as const)('the reason of a revert with %s is readable', (_title, data, reason) => {
  expect(revertReason(data)).toBe(reason);
});

test('a long reason is truncated', () => {
  const data = encodeErrorResult({ abi: FACTORY_ABI, errorName: 'IdeaAlreadyDeployed', args: [1n, 'x'.repeat(9_000)] });
  expect(revertReason(data)).toHaveLength(300);
});
