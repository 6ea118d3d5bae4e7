// Changes every third byte of a valid export (every byte with BYTES=all) and expects a finding that names the event. Values of
// the last line that only the chain or the service's clock can verify are excluded.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../kit/random.ts';
import { audit } from './forge.ts';

const LINE_BREAK = 0x0a;
const bytes = readFileSync(new URL('../../fixtures/logs/chamber.ndjson', import.meta.url));

const STRIDE = process.env['BYTES'] === 'all' ? 1 : 3;

/** The offsets of the lines and of the end of the text. */
const starts = [0, ...[...bytes.keys()].filter((at) => bytes[at] === LINE_BREAK).map((at) => at + 1)];
const LAST = starts.length - 1;
const lines = Array.from({ length: LAST - 1 }, (_, index) => index + 1);

function withByte(at: number, byte: number): Buffer {
  const mutant = Buffer.from(bytes);
  mutant[at] = byte;
  return mutant;
}

describe('a changed byte of a line, audited with its two neighbours and without checking signatures', () => {
  const random = new Random(7);

  test.each(lines)('any changed byte of line %i is detected', async (eventId) => {
    const first = Math.max(0, eventId - 2);
    const [from, to] = [starts[first], starts[first + 3]];
    const missed: number[] = [];
    for (let at = starts[eventId - 1] as number; at < (starts[eventId] as number); at += STRIDE) {
      const other = ((bytes[at] as number) + 1 + random.below(255)) % 256;
      const { named } = await audit(withByte(at, other).subarray(from, to), { verify: () => true });
      if (!named.has(eventId)) missed.push(at);
    }
    expect(missed).toEqual([]);
  });
});

test('any changed byte of the whole export is detected', async () => {
  const place = fc.nat((starts[LAST - 1] as number) - 1);
  await fc.assert(
    fc.asyncProperty(place, fc.integer({ min: 0, max: 255 }), async (at, byte) => {
      fc.pre(bytes[at] !== byte);
      const eventId = starts.filter((start) => start <= at).length;
      expect((await audit(withByte(at, byte))).named).toContain(eventId);
    }),
    { numRuns: 100 },
  );
});
