// A mirror of a static log, and the expected content of the mirror's folder.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Mirror, type MirrorOptions } from '../../src/mirror/mirror.ts';
import { openCheckpoint } from '../../src/tlog/proof.ts';
import { tileAt, tilePath } from '../../src/tlog/tile.ts';
import { rootOfTiles } from '../../src/tlog/tiled-tree.ts';
import { type LoggedLine, lineAfter, STATIC_LOG_KEY } from '../kit/static-log.ts';

/** Lines of ten chambers in turn. */
export function linesOf(count: number): readonly LoggedLine[] {
  const lines: LoggedLine[] = [];
  for (let i = 0; i < count; i++) lines.push(lineAfter(lines.slice(-10), (i % 10) + 1));
  return lines;
}

export const LINES = linesOf(1_300);

export async function step(url: string, folder: string, options: Partial<MirrorOptions> = {}) {
  const mirror = await Mirror.open({ url, folder, restMs: 0, ...options });
  try {
    return { ...(await mirror.step()), damage: mirror.damage };
  } finally {
    await mirror.close();
  }
}

/** Checks the folder from its files alone, like a program of a third party. */
export async function expectValid(folder: string, size: number): Promise<void> {
  const lines = readFileSync(join(folder, 'lines.ndjson'), 'utf8');
  expect(lines).toBe(
    LINES.slice(0, size)
      .map(({ line }) => `${line}\n`)
      .join(''),
  );
  const checkpoint = openCheckpoint(readFileSync(join(folder, 'checkpoint'), 'utf8'), STATIC_LOG_KEY);
  const root = await rootOfTiles(size, async (refs) =>
    refs.map((ref) => readFileSync(join(folder, tilePath(tileAt(ref, size) ?? expect.fail('no tile'))))),
  );
  expect([checkpoint?.size, Buffer.from(checkpoint?.root ?? [])]).toEqual([size, Buffer.from(root)]);
}
