import { keccak_256 } from '@noble/hashes/sha3.js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keccak256 } from '../../src/crypto/keccak.ts';
import { toHex } from '../../src/vocabulary/values.ts';

// Around the block of 136 bytes, where padding changes, and beyond WebAssembly's chunk.
const LENGTHS = [0, 1, 32, 64, 135, 136, 137, 271, 272, 273, 5000, 16_384, 16_385, 70_000];

function sample(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + length) % 256);
}

afterEach(() => void vi.unstubAllGlobals());

describe('keccak256', () => {
  it('has the well-known hash of nothing', () => {
    const hash = '0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470';
    expect(toHex(keccak256(new Uint8Array()))).toBe(hash);
  });

  it.each(LENGTHS)('of %i bytes is what @noble/hashes computes', (length) => {
    expect(toHex(keccak256(sample(length)))).toBe(toHex(keccak_256(sample(length))));
  });

  it('hashes a view of a larger buffer, Node buffers included', () => {
    const view = sample(300).subarray(7, 207);
    expect(toHex(keccak256(view))).toBe(toHex(keccak_256(view.slice())));
    expect(toHex(keccak256(Buffer.from(view)))).toBe(toHex(keccak_256(view.slice())));
  });

  it('returns new bytes to each caller', () => {
    const first = keccak256(sample(1));
    const kept = toHex(first);
    keccak256(sample(2));
    expect(toHex(first)).toBe(kept);
  });

  it('is the same where there is no WebAssembly', async () => {
    vi.stubGlobal('WebAssembly', undefined);
    // The query creates a second module.
    const { href } = new URL('../../src/crypto/keccak.ts?plain', import.meta.url);
    const plain: typeof import('../../src/crypto/keccak.ts') = await import(href);
    expect(plain.keccak256).not.toBe(keccak256);
    expect(LENGTHS.map((length) => toHex(plain.keccak256(sample(length))))).toEqual(
      LENGTHS.map((length) => toHex(keccak256(sample(length)))),
    );
  });
});
