import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHex, instantOf, isPhase, PHASES, toHex, toTimestamp } from '../../src/vocabulary/values.ts';

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);

describe('hexadecimal', () => {
  it('toHex writes every byte like Node', () => {
    expect(toHex(EVERY_BYTE)).toBe(`0x${Buffer.from(EVERY_BYTE).toString('hex')}`);
  });

  it('fromHex reads every byte in either letter case', () => {
    expect(fromHex(toHex(EVERY_BYTE))).toEqual(EVERY_BYTE);
    expect(fromHex(`0x${toHex(EVERY_BYTE).slice(2).toUpperCase()}`)).toEqual(EVERY_BYTE);
  });

  it('an empty byte array round-trips through hexadecimal', () => {
    expect(toHex(new Uint8Array())).toBe('0x');
    expect(fromHex('0x')).toEqual(new Uint8Array());
  });

  it.each(['', '00', '0X00', '0x0', '0x0g', '0x 1', '0x00\n', ' 0x00', '0x-1', '0x١٢'])(
    'fromHex rejects %j',
    (text) => {
      expect(() => fromHex(text)).toThrow(RangeError);
    },
  );

  it('the error of fromHex says that 0x is missing', () => {
    expect(() => fromHex('00')).toThrow(new RangeError('hexadecimal must start with 0x'));
  });
});

describe('a timestamp', () => {
  it('a timestamp equals the text of Date for every time', () => {
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

  it('a text that is not a time is not a timestamp', () => {
    for (const millis of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1]) {
      expect(() => toTimestamp(millis)).toThrow(RangeError);
    }
  });
});

describe('an instant', () => {
  it('an instant is read from an RFC 3339 date-time with any offset, truncated to milliseconds', () => {
    const at = Date.UTC(2030, 0, 31, 12, 0, 0, 500);
    for (const text of [
      '2030-01-31T12:00:00.5Z',
      '2030-01-31t12:00:00.5009z',
      '2030-01-31T13:30:00.500+01:30',
      '2030-01-30T12:01:00.50-23:59',
    ])
      expect([text, instantOf(text)]).toEqual([text, at]);
    expect(instantOf('0000-02-29T00:00:00.000Z')).toBe(Date.parse('0000-02-29T00:00:00.000Z'));
    expect(instantOf('9999-12-31T23:59:59.999Z')).toBe(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
  });

  it('an instant is read back from every timestamp', () => {
    const years = { min: Date.parse('0000-01-01T00:00:00.000Z'), max: Date.UTC(10_000) - 1 };
    fc.assert(fc.property(fc.integer(years), (millis) => instantOf(toTimestamp(millis)) === millis));
  });

  it.each([
    '2030-01-01 04:31:00 UTC',
    '2030-01-01 04:31:00 (by nobody) Z',
    '2030-01-01T04:31:00',
    '2030-01-01T04:31:00 ',
    '2030-01-01T04:31:00.Z',
    '2030-01-01T04:31:00+0000',
    '2030-01-01T04:31:00+24:00',
    '2030-01-01T04:30:60Z',
    '2029-12-31T24:00:00Z',
    '2030-02-30T04:31:00Z',
    '2030-00-10T04:31:00Z',
    '2030-13-10T04:31:00Z',
    '2030-01-00T04:31:00Z',
    '+002030-01-01T04:31:00Z',
    'Jan 01 2030 04:31:00 UTC',
    '٢٠٣٠-01-01T04:31:00Z',
    '2030',
    '1',
    '',
  ])('%j is not an instant', (text) => {
    expect(instantOf(text)).toBeNaN();
  });

  it('the sources use Date.parse only for the dates of HTTP', () => {
    const sources = ['src', 'projections'].flatMap((folder) => {
      const root = fileURLToPath(new URL(`../../${folder}`, import.meta.url));
      return readdirSync(root, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => `${root}/${name}`);
    });
    const others = sources.filter((path) => readFileSync(path, 'utf8').includes('Date.parse('));
    expect(others.map((path) => path.replace(/.*\/(src|projections)\//, ''))).toEqual(['reading/http-date.ts']);
  });
});

describe('a phase', () => {
  it('a phase is one of six names in uppercase', () => {
    expect(PHASES.filter(isPhase)).toHaveLength(6);
    expect(['', 'lobby', 'LOBBY ', 'CLOSED'].filter(isPhase)).toEqual([]);
  });
});
