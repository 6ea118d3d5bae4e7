import { describe, expect, it } from 'vitest';
import { fromHex, isPhase, PHASES, toHex } from '../../src/vocabulary/values.ts';

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);

describe('hexadecimal', () => {
  it('writes every byte as Node does', () => {
    expect(toHex(EVERY_BYTE)).toBe(`0x${Buffer.from(EVERY_BYTE).toString('hex')}`);
  });

  it('reads back every byte in either case', () => {
    expect(fromHex(toHex(EVERY_BYTE))).toEqual(EVERY_BYTE);
    expect(fromHex(`0x${toHex(EVERY_BYTE).slice(2).toUpperCase()}`)).toEqual(EVERY_BYTE);
  });

  it('holds no bytes too', () => {
    expect(toHex(new Uint8Array())).toBe('0x');
    expect(fromHex('0x')).toEqual(new Uint8Array());
  });

  it.each(['', '00', '0X00', '0x0', '0x0g', '0x 1', '0x00\n', ' 0x00', '0x-1', '0x١٢'])('refuses %j', (text) => {
    expect(() => fromHex(text)).toThrow(RangeError);
  });

  it('says that 0x is missing', () => {
    expect(() => fromHex('00')).toThrow(new RangeError('hexadecimal must start with 0x'));
  });
});

describe('a phase', () => {
  it('is one of six names, in capitals', () => {
    expect(PHASES.filter(isPhase)).toHaveLength(6);
    expect(['', 'lobby', 'LOBBY ', 'CLOSED'].filter(isPhase)).toEqual([]);
  });
});
