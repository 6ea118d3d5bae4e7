// Failing disks: the service waits for space on a full disk, and exits on a damaged disk, so that memory and disk never differ.

import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/service-process.ts';
import { fill } from '../kit/small-file-system.ts';
import { smallDisk, temporaryDatabase } from '../kit/temporary.ts';
import { get, send, type Wire, type WireAnswer } from '../kit/wire.ts';
import { eventsBySignature, faultsOf, rebuildLog } from './log-book.ts';
import { debateOf, must, type Player, seatPlayers } from './players.ts';

const COMMENT = 'x'.repeat(8_000);

async function newPlayer(databasePath: string): Promise<Player> {
  return (await seatPlayers(databasePath, 1))[0] as Player;
}

function longDebate(player: Player): Wire {
  return debateOf(player, { comment: COMMENT });
}

describe('a full disk', () => {
  it('on a full disk, moves get 503 and reads continue, until there is space', async ({ skip }) => {
    const folder = smallDisk('4m');
    if (folder === undefined) return skip();
    const path = join(folder, 'chambers.db');
    const player = await newPlayer(path);
    const service = await startProcess(path);
    const ballast = join(folder, 'ballast');
    writeFileSync(ballast, Buffer.alloc(1_500_000));

    let refused: WireAnswer | undefined;
    let request = longDebate(player);
    let answered = 0;
    for (; refused === undefined; answered++) {
      request = longDebate(player);
      const answer = await send(service.url, request);
      if (answer.status !== 200) refused = answer;
    }
    expect(answered).toBeLessThan(1_000);
    expect(refused).toMatchObject({ status: 503, body: { error: 'FORUM_ERR_UNAVAILABLE' } });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await get(service.url, `/chambers/${player.debating}`)).toMatchObject({ status: 200 });
    expect(await get(service.url, '/health')).toMatchObject({ status: 200 });
    expect((await send(service.url, request)).status).toBe(503);

    rmSync(ballast);
    await must(service.url, request);
    await must(service.url, longDebate(player));
    expect(await service.kill('SIGTERM')).toMatchObject({ code: 0 });
    const { signature = '' } = request.headers;
    expect(eventsBySignature(path).has(signature)).toBe(true);
    expect(await faultsOf(path)).toEqual([]);
  });

  it('/ready reports that a disk is full, and later that it has space again, without any move', async ({ skip }) => {
    const folder = smallDisk('4m');
    if (folder === undefined) return skip();
    const path = join(folder, 'chambers.db');
    const player = await newPlayer(path);
    const { url } = await startProcess(path);
    await must(url, longDebate(player));
    expect(await get(url, '/ready')).toMatchObject({ status: 200, body: { ready: true } });
    fill(join(folder, 'ballast'));
    const ready = async () => (await get(url, '/ready')).status;
    await expect.poll(ready, { timeout: 25_000 }).toBe(503);
    expect(await get(url, '/ready')).toMatchObject({ body: { error: 'FORUM_ERR_UNAVAILABLE' } });
    expect(await get(url, '/health')).toMatchObject({ status: 200, body: { ok: true } });
    expect(await send(url, longDebate(player))).toMatchObject({ status: 503 });
    rmSync(join(folder, 'ballast'));
    await expect.poll(ready, { timeout: 25_000 }).toBe(200);
    await must(url, longDebate(player));
  }, 180_000);

  it.for(['SIGKILL', 'SIGTERM'] as const)(
    'on a full disk, the service starts and serves reads after %s',
    async (signal, { skip }) => {
      const folder = smallDisk('4m');
      if (folder === undefined) return skip();
      const path = join(folder, 'chambers.db');
      const player = await newPlayer(path);
      const before = await startProcess(path);
      await must(before.url, longDebate(player));
      await before.kill(signal);
      fill(join(folder, 'ballast'));
      const after = await startProcess(path);
      expect(await get(after.url, `/chambers/${player.debating}`)).toMatchObject({ status: 200 });
      expect(await send(after.url, longDebate(player))).toMatchObject({ status: 503 });
      rmSync(join(folder, 'ballast'));
      await must(after.url, longDebate(player));
    },
  );
});

describe('a damaged disk', () => {
  it('the process exits with 1 when a read finds corruption', async () => {
    const path = temporaryDatabase();
    const player = await newPlayer(path);
    const first = await startProcess(path);
    for (let move = 0; move < 50; move++) await must(first.url, longDebate(player));
    await first.kill('SIGTERM');
    // Every event gets an index entry, because startup would find the damage in events without one.
    await rebuildLog(path);
    damage(path, COMMENT);

    const service = await startProcess(path);
    const answer = await get(service.url, `/chambers/${player.debating}/events`).catch(() => undefined);
    expect(answer?.status).not.toBe(200);
    const { code, stderr } = await service.exited;
    expect(code).toBe(1);
    expect(stderr).toContain('SQLITE_CORRUPT');
  });

  it('the process exits with 1 when the database file is removed', async () => {
    const path = temporaryDatabase();
    const player = await newPlayer(path);
    const service = await startProcess(path);
    await must(service.url, longDebate(player));
    copyFileSync(path, `${path}.other`);
    rmSync(path);
    rmSync(`${path}-wal`);
    const answer = await send(service.url, longDebate(player)).catch(() => undefined);
    expect(answer?.status).not.toBe(200);
    expect((await service.exited).code).toBe(1);
  });

  it.each([
    ['-wal', 'deleted', rmSync],
    ['-wal', 'truncated', truncateSync],
    ['-shm', 'deleted', rmSync],
    ['-shm', 'truncated', truncateSync],
    // The operating system may kill the process first, when it reads a missing page.
  ] as const)(
    'the process exits with 1 before the next response when the %s was %s',
    {
      retry: 1,
    },
    async (suffix, how, damage) => {
      const path = temporaryDatabase();
      const player = await newPlayer(path);
      const service = await startProcess(path);
      await must(service.url, longDebate(player));
      damage(path + suffix);
      const answer = await send(service.url, longDebate(player)).catch(() => undefined);
      expect(answer?.status).not.toBe(200);
      const { code, stderr } = await service.exited;
      expect(code).toBe(1);
      expect(stderr).toContain(`${path}${suffix} was ${how} while it was open`);
    },
  );
});

describe('a deleted -wal file', () => {
  it('a deleted -wal file loses no accepted move: the process saves them before it exits', async () => {
    const path = temporaryDatabase();
    const player = await newPlayer(path);
    const service = await startProcess(path);
    const answered = [longDebate(player), longDebate(player), longDebate(player)];
    for (const request of answered) await must(service.url, request);
    rmSync(`${path}-wal`);
    await send(service.url, longDebate(player)).catch(() => undefined);
    expect((await service.exited).code).toBe(1);
    await startProcess(path);
    const stored = eventsBySignature(path);
    expect(answered.filter(({ headers: { signature = '' } }) => !stored.has(signature))).toEqual([]);
  });
});

const PAGE_BYTES = 4_096;

/** Corrupts the pages with the text, except for the first and the last ones, which are read at startup. */
function damage(path: string, text: string): void {
  const bytes = readFileSync(path);
  const needle = Buffer.from(text.slice(0, 1_000));
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + PAGE_BYTES)) {
    const page = at - (at % PAGE_BYTES);
    if (page > 16 * PAGE_BYTES && page < bytes.length / 2) bytes.fill(0xff, page, page + PAGE_BYTES);
  }
  writeFileSync(path, bytes);
}
