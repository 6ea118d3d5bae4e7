import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHex, isPhase, PHASES, toHex, toTimestamp } from '../../src/vocabulary/values.ts';

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

  it.each(['', '00', '0X00', '0x0', '0x0g', '0x 1', '0x00\n', ' 0x00', '0x-1', '0x١٢'])('rejects %j', (text) => {
    expect(() => fromHex(text)).toThrow(RangeError);
  });

  it('says that 0x is missing', () => {
    expect(() => fromHex('00')).toThrow(new RangeError('hexadecimal must start with 0x'));
  });
});

describe('a timestamp', () => {
  it('is the text that Date has for every time', () => {
    const recent = fc.integer({ min: Date.UTC(1970), max: Date.UTC(2100) });
    const any = fc.date({ noInvalidDate: true }).map((date) => date.getTime());
    fc.assert(
      fc.property(fc.oneof(recent, any), (millis) => {
        expect(toTimestamp(millis)).toBe(new Date(millis).toISOString());
      }),
    );
    for (const edge of [0, -1, Date.UTC(9999, 11, 31, 23, 59, 59, 999), Date.UTC(10_000), 8.64e15, -8.64e15]) {
      expect(toTimestamp(edge)).toBe(new Date(edge).toISOString());
    }
  });

  it('is none of what is no time', () => {
    for (const millis of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1]) {
      expect(() => toTimestamp(millis)).toThrow(RangeError);
    }
  });
});

describe('a phase', () => {
  it('is one of six names, in capitals', () => {
    expect(PHASES.filter(isPhase)).toHaveLength(6);
    expect(['', 'lobby', 'LOBBY ', 'CLOSED'].filter(isPhase)).toEqual([]);
  });
});
