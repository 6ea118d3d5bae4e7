// A hostile service may send a response in chunks of one byte.
import { expect, test } from 'vitest';
import { splitLines } from '../../src/reading/lines.ts';
import { openResponse } from '../../src/reading/response.ts';

const BYTES = 150_000;
const text = `${'a'.repeat(BYTES)}\nb\n\nc`;
const chunks = function* () {
  for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
};

test('lines in chunks of one byte are those that were sent', async () => {
  const input = (async function* () {
    yield* chunks();
  })();
  const lines: (readonly [string, boolean])[] = [];
  for await (const { bytes, isEnded } of splitLines(input, { lineBytesMax: BYTES })) {
    lines.push([Buffer.from(bytes).toString(), isEnded]);
  }
  expect(lines).toEqual([
    ['a'.repeat(BYTES), true],
    ['b', true],
    ['', true],
    ['c', false],
  ]);
});

test('a body in chunks of one byte is the one that was sent', async () => {
  const response = new Response(ReadableStream.from(chunks()));
  const opened = await openResponse(async () => response, 'http://localhost', {}, {});
  expect(Buffer.from(await opened.bytes({ responseBytesMax: text.length })).toString()).toBe(text);
});
