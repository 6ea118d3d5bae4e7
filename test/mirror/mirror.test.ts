// A mirror of a real service: it copies the service's log, resumes, and proves contradictions.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { AnotherLog, Inconsistent, Mirror } from '../../src/mirror/mirror.ts';
import { NotServed } from '../../src/mirror/published-log.ts';
import { parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import { formatVerifierKey, type NoteKey, parseVerifierKey } from '../../src/tlog/note.ts';
import { openCheckpoint } from '../../src/tlog/proof.ts';
import { parseTilePath, tilePath } from '../../src/tlog/tile.ts';
import { rootOfTiles } from '../../src/tlog/tiled-tree.ts';
import { run as runCli } from '../cli/run.ts';
import { debating, newAgent, type Running, run } from '../kit/service.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

async function published(path: string, settings = {}): Promise<Running & { readonly key: NoteKey }> {
  const running = await run({ DATABASE_PATH: path, ...settings });
  const { log } = (await (await fetch(running.url)).json()) as { readonly log: { readonly checkpointKey: string } };
  return { ...running, key: parseVerifierKey(log.checkpointKey) ?? expect.fail('no verifier key') };
}

async function covered({ service }: Running): Promise<void> {
  const { log, tree } = service.forum.store;
  await eventually(async () => expect((await tree.checkpoint())?.size).toBe(await log.lastPlace()), 20_000);
}

async function stepped(url: string, folder: string) {
  const mirror = await Mirror.open({ url, folder });
  try {
    return await mirror.step();
  } finally {
    await mirror.close();
  }
}

describe('a mirror', () => {
  it('a mirror copies every line under the checkpoint, resumes, and changes nothing without new lines', async () => {
    const running = await published(temporaryDatabase());
    const folder = temporaryFolder();
    await newAgent(running);
    const { debate } = await debating(running);
    await covered(running);
    expect(await stepped(running.url, folder)).toEqual({ size: 4, added: 4, unpublished: 0 });
    for (let i = 0; i < 300; i++) await debate(`comment ${i}`);
    await covered(running);
    expect(await stepped(running.url, folder)).toMatchObject({ size: 304, added: 300 });
    expect(await stepped(running.url, folder)).toMatchObject({ size: 304, added: 0 });
    const lines = readFileSync(join(folder, 'lines.ndjson'), 'utf8').split('\n').slice(0, -1);
    expect(lines).toHaveLength(304);
    const { tree } = running.service.forum.store;
    const leaves = Buffer.from(await tree.readLeaves(0, 1_000));
    expect(Buffer.concat(lines.map((line) => leafHash(Buffer.from(line))))).toEqual(leaves);
    const checkpoint = openCheckpoint(readFileSync(join(folder, 'checkpoint'), 'utf8'), running.key);
    expect(checkpoint?.size).toBe(304);
    const files = readdirSync(join(folder, 'tile'), { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map((file) => join(file.parentPath, file.name).slice(folder.length + 1))
      .sort();
    expect(files).toEqual([
      'tile/0/000',
      'tile/0/001.p/48',
      'tile/1/000.p/1',
      'tile/entries/000',
      'tile/entries/001.p/48',
    ]);
    const read = async (refs: Parameters<typeof tree.readTiles>[0]) =>
      refs.map(({ level, index }) => {
        const file = files.find((name) => {
          const tile = parseTilePath(name);
          return tile?.level === level && tile.index === index;
        });
        return file === undefined ? undefined : new Uint8Array(readFileSync(join(folder, file)));
      });
    expect(Buffer.from(await rootOfTiles(304, read))).toEqual(Buffer.from(checkpoint?.root ?? []));
    expect(tilePath({ level: 0, index: 1, width: 48 })).toBe('tile/0/001.p/48');
  });

  it('a mirror reports a service that is down or has a different log, and keeps its lines', async () => {
    const running = await published(temporaryDatabase());
    await newAgent(running);
    await covered(running);
    const folder = temporaryFolder();
    await stepped(running.url, folder);
    const other = await published(temporaryDatabase());
    await newAgent(other);
    await covered(other);
    await expect(stepped(other.url, folder)).rejects.toThrow(AnotherLog);
    expect((await runCli(['mirror', other.url, folder])).exitCode).toBe(5);
    await running.stop();
    await expect(stepped(running.url, folder)).rejects.toThrow(NotServed);
    expect(readFileSync(join(folder, 'lines.ndjson'), 'utf8').trimEnd().split('\n')).toHaveLength(1);
  });

  it('a mirror proves a fork of the log with one file', { timeout: 120_000 }, async () => {
    const path = temporaryDatabase();
    const first = await published(path);
    await newAgent(first);
    await covered(first);
    await first.stop();
    const fork = join(temporaryFolder(), 'fork');
    cpSync(dirname(path), fork, { recursive: true });
    rmSync(join(fork, 'chambers.db.lock'), { force: true });
    // The mirror gets one history, and all other readers get the other.
    const one = await published(path);
    await newAgent(one);
    await newAgent(one);
    await covered(one);
    const folder = temporaryFolder();
    await stepped(one.url, folder);
    await one.stop();
    const other = await published(join(fork, 'chambers.db'));
    for (let i = 0; i < 3; i++) await newAgent(other);
    await covered(other);
    const problem = await stepped(other.url, folder).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(Inconsistent);
    const { file } = problem as Inconsistent;
    expect(file).toBe(join(folder, 'inconsistent-3-4.json'));
    const proved = await verifyMisbehaviour(parseMisbehaviour(readFileSync(file, 'utf8')));
    expect(proved.checkpointKeys).toEqual([formatVerifierKey(other.key)]);
    // Each further attempt also fails, with the exit code of a failed verification.
    const cli = await runCli(['mirror', other.url, folder, '--once', '--json']);
    expect(cli.exitCode).toBe(3);
    expect(JSON.parse(cli.out)).toMatchObject({
      inconsistent: expect.stringContaining('does not extend'),
      file,
    });
    expect(existsSync(join(folder, 'checkpoint'))).toBe(true);
  });
});
