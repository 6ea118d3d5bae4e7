import { keccak_256 } from '@noble/hashes/sha3.js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keccak256 } from '../../src/crypto/keccak.ts';
import { toHex } from '../../src/vocabulary/values.ts';

// Lengths around the block of 136 bytes, where the padding changes, and beyond WebAssembly's chunk.
const LENGTHS = [0, 1, 32, 64, 135, 136, 137, 271, 272, 273, 5000, 16_384, 16_385, 70_000];

function sample(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + length) % 256);
}

afterEach(() => void vi.unstubAllGlobals());

describe('keccak256', () => {
  it('keccak256 returns the well-known hash of the empty input', () => {
    const hash = '0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470';
    expect(toHex(keccak256(new Uint8Array()))).toBe(hash);
  });

  it.each(LENGTHS)('keccak256 of %i bytes equals @noble/hashes', (length) => {
    expect(toHex(keccak256(sample(length)))).toBe(toHex(keccak_256(sample(length))));
  });

  it('keccak256 hashes a view of a larger buffer, including Node buffers', () => {
    const view = sample(300).subarray(7, 207);
    expect(toHex(keccak256(view))).toBe(toHex(keccak_256(view.slice())));
    expect(toHex(keccak256(Buffer.from(view)))).toBe(toHex(keccak_256(view.slice())));
  });

  it('keccak256 returns new bytes to each caller', () => {
    const first = keccak256(sample(1));
    const kept = toHex(first);
    keccak256(sample(2));
    expect(toHex(first)).toBe(kept);
  });

  it('keccak256 returns the same hash without WebAssembly', async () => {
    vi.stubGlobal('WebAssembly', undefined);
    // The query string makes Node load a second instance of the module.
    const { href } = new URL('../../src/crypto/keccak.ts?plain', import.meta.url);
    const plain: typeof import('../../src/crypto/keccak.ts') = await import(href);
    expect(plain.keccak256).not.toBe(keccak256);
    expect(LENGTHS.map((length) => toHex(plain.keccak256(sample(length))))).toEqual(
      LENGTHS.map((length) => toHex(keccak256(sample(length)))),
    );
  });
});
