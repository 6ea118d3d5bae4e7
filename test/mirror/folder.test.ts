// A mirror's folder: only one process uses it, an interrupted step leaves it valid, and damaged lines are fetched again.
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { MirrorFolder } from '../../src/mirror/folder.ts';
import { Mirror } from '../../src/mirror/mirror.ts';
import { NotServed } from '../../src/mirror/published-log.ts';
import { serveLog } from '../kit/static-log.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { expectValid, LINES, linesOf, step } from './static-mirror.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the folder of a mirror', () => {
  it('the folder belongs to one mirror at a time', async () => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES.slice(0, 5) });
    const mirror = await Mirror.open({ url, folder });
    await expect(Mirror.open({ url, folder })).rejects.toThrow(/another mirror uses the folder$/);
    await mirror.step();
    await expect(Mirror.open({ url, folder })).rejects.toThrow(/another mirror uses the folder$/);
    await mirror.close();
    await step(url, folder);
    await expectValid(folder, 5);
  });

  it('the folder is valid when a step fails and the next one follows in the same process', async () => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES });
    const mirror = await Mirror.open({ url, folder });
    vi.spyOn(MirrorFolder.prototype, 'writeTiles').mockRejectedValueOnce(new Error('no space left'));
    await expect(mirror.step()).rejects.toThrow('no space left');
    await mirror.step();
    await mirror.close();
    await expectValid(folder, LINES.length);
  });

  it('a mirror that was killed in its first run resumes after the last committed batch', async () => {
    const folder = temporaryFolder();
    const { url, requests } = await serveLog({ entries: LINES });
    const real = MirrorFolder.prototype.commit;
    let commits = 0;
    vi.spyOn(MirrorFolder.prototype, 'commit').mockImplementation(async function (this: MirrorFolder, ...args) {
      if (++commits === 2) throw new Error('killed');
      await real.apply(this, args);
    });
    await expect(step(url, folder)).rejects.toThrow('killed');
    vi.restoreAllMocks();
    requests.length = 0;
    expect(await step(url, folder)).toMatchObject({ size: 1_300, added: 1_300 - 1_024 });
    expect(requests.filter((path) => path.includes('/tile/entries/'))).toEqual([
      expect.stringContaining('tile/entries/004'),
      expect.stringContaining('tile/entries/005'),
    ]);
    await expectValid(folder, LINES.length);
  });

  it('the folder is truncated to its committed lines after a crash', async () => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES.slice(0, 300) });
    await step(url, folder);
    appendFileSync(join(folder, 'lines.ndjson'), '{"torn');
    rmSync(join(folder, 'checkpoint'));
    expect(await step(url, folder)).toEqual({ size: 300, added: 0, unpublished: 0, damage: undefined });
    await expectValid(folder, 300);
  });

  it.each<[string, (folder: string) => void, RegExp]>([
    ['truncated lines', (folder) => truncateSync(join(folder, 'lines.ndjson'), 4_000), /has 4000 bytes, but/],
    [
      'lines that end in NULs',
      (folder) => {
        const file = join(folder, 'lines.ndjson');
        const { length } = readFileSync(file);
        truncateSync(file, length - 1_000);
        truncateSync(file, length);
      },
      /does not end with a line/,
    ],
    [
      'a changed line near the end',
      (folder) => {
        const file = join(folder, 'lines.ndjson');
        writeFileSync(file, readFileSync(file, 'utf8').replace('"eventId":30', '"eventId":31'));
      },
      /line 291 of lines.ndjson has changed since it was verified/,
    ],
    ['a missing tile', (folder) => rmSync(join(folder, 'tile/0/001.p/44')), /tile 1 of level 0 has 0 hashes/],
  ])('a folder with %s is fetched again, and keeps the damaged lines', async (_, damage, problem) => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES.slice(0, 300) });
    await step(url, folder);
    damage(folder);
    const again = await step(url, folder);
    expect(again).toMatchObject({ size: 300, added: 300, damage: expect.stringMatching(problem) });
    expect(readdirSync(folder).filter((name) => name.startsWith('lines-damaged-'))).toHaveLength(1);
    await expectValid(folder, 300);
  });

  it('a tile that cannot be read stops the mirror, which keeps its lines', async () => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES.slice(0, 300) });
    await step(url, folder);
    const tile = join(folder, 'tile/0/001.p/44');
    renameSync(tile, `${tile}.kept`);
    mkdirSync(tile);
    await expect(step(url, folder)).rejects.toMatchObject({ code: 'EISDIR' });
    rmdirSync(tile);
    renameSync(`${tile}.kept`, tile);
    expect(await step(url, folder)).toEqual({ size: 300, added: 0, unpublished: 0, damage: undefined });
  });

  it('a mirror rejects a different history of the log even after damage', async () => {
    const folder = temporaryFolder();
    const { url, replace } = await serveLog({ entries: LINES.slice(0, 300) });
    await step(url, folder);
    truncateSync(join(folder, 'lines.ndjson'), 0);
    const other = linesOf(310).map(({ line, ...rest }, i) => ({ ...rest, line: i < 299 ? line : `${line} ` }));
    replace({ entries: other });
    await expect(step(url, folder)).rejects.toThrow(/does not extend/);
    replace({ entries: LINES.slice(0, 300) });
    expect(await step(url, folder)).toMatchObject({ size: 300, added: 300 });
  });

  it('a folder with a checkpoint but no mirror.db is rejected', async () => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES.slice(0, 5) });
    await step(url, folder);
    rmSync(join(folder, 'mirror.db'));
    await expect(step(url, folder)).rejects.toThrow(/no mirror\.db: restore/);
  });

  it('the folder gets no lines that the checkpoint does not cover', async () => {
    const folder = temporaryFolder();
    const { url } = await serveLog({ entries: LINES, size: 1_299 });
    await expect(step(url, folder)).rejects.toThrow(NotServed);
    expect(readFileSync(join(folder, 'lines.ndjson'), 'utf8')).toBe('');
  });
});
