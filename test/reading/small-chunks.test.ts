// A hostile service may send a response in chunks of one byte.
import { expect, test } from 'vitest';
import { splitLines } from '../../src/reading/lines.ts';
import { openResponse } from '../../src/reading/response.ts';
import { heapHeld } from '../kit/memory-held.ts';
import { eventually } from '../kit/until.ts';

const BYTES = 150_000;
const text = `${'a'.repeat(BYTES)}\nb\n\nc`;
const chunks = function* () {
  for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
};

test('lines sent in chunks of one byte are read unchanged', async () => {
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

test('a body sent in chunks of one byte is read unchanged', async () => {
  const response = new Response(ReadableStream.from(chunks()));
  const opened = await openResponse(async () => response, 'http://localhost', {}, {});
  expect(Buffer.from(await opened.bytes({ responseBytesMax: text.length })).toString()).toBe(text);
});

test('chunks that end with a line are not retained', async () => {
  const chunks: WeakRef<ArrayBuffer>[] = [];
  const input = (async function* () {
    for (let n = 0; n < 1_000; n++) {
      const chunk = new Uint8Array(65_536).fill(0x0a, 65_535);
      chunks.push(new WeakRef(chunk.buffer));
      yield chunk;
    }
  })();
  let lines = 0;
  for await (const { bytes } of splitLines(input, { lineBytesMax: 65_536 })) {
    expect(bytes).toHaveLength(65_535);
    if (++lines < 500) continue;
    await eventually(async () => {
      await heapHeld();
      expect(chunks.filter((chunk) => chunk.deref() !== undefined).length).toBeLessThan(10);
    }, 5_000);
    return;
  }
  expect(lines).toBe(500);
});
