// Tests the transparency log with the client of Go's checksum database (golang.org/x/mod/sumdb, from Debian's golang-go and
// golang-golang-x-mod-dev) while the log grows and its service is killed. The client shares no code with the service.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freePort } from '../../src/demo/free-port.ts';
import { Load, seatPlayers } from '../durability/players.ts';
import { seededBy } from '../kit/random.ts';
import { startProcess } from '../kit/service-process.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';

const GOPATH = '/usr/share/gocode';
const PROGRAM = fileURLToPath(new URL('tlog/judge.go', import.meta.url));
const PAIRS = 1_000;
const ROUNDS = 6;
const KILLS = 3;
const PLAYERS = 4;

test('Go’s checksum database client verifies notes, proofs and roots while the log grows and its service is killed', {
  timeout: 240_000,
}, async () => {
  const hasGo =
    spawnSync('go', ['version']).status === 0 && existsSync(join(GOPATH, 'src/golang.org/x/mod/sumdb/tlog'));
  if (!hasGo) {
    console.log('skipped: golang-go and golang-golang-x-mod-dev are not installed');
    return;
  }
  const binary = join(temporaryFolder(), 'judge');
  const env = { ...process.env, GOPATH, GO111MODULE: 'off', GOFLAGS: '', GOCACHE: temporaryFolder() };
  expect(spawnSync('go', ['build', '-o', binary, PROGRAM], { env, encoding: 'utf8' })).toMatchObject({ status: 0 });

  const path = temporaryDatabase();
  const settings = { PORT: String(await freePort()), IDEAS_MAX: '100000' };
  const [random, players] = [seededBy('JUDGE_SEED'), await seatPlayers(path, PLAYERS)];
  let service = await startProcess(path, settings);
  let load = new Load(service.url, players, random);
  await load.answered(500);
  const judge = spawn(binary, [service.url, String(PAIRS), String(ROUNDS)], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [texts, judged] = [{ out: '', err: '' }, once(judge, 'close')];
  judge.stdout.on('data', (chunk) => {
    texts.out += chunk;
  });
  judge.stderr.on('data', (chunk) => {
    texts.err += chunk;
  });
  for (let kill = 0; kill < KILLS; kill++) {
    await load.answered(300);
    await service.kill('SIGKILL');
    await Promise.all(load.playing);
    service = await startProcess(path, settings);
    load = new Load(service.url, players, random);
  }
  const [code] = await judged;
  expect({ code, err: texts.err }).toEqual({ code: 0, err: '' });
  console.log(texts.out);
  const sizes = [...texts.out.matchAll(/^size (\d+)/gm)].map(([, size]) => Number(size));
  expect(sizes).toHaveLength(ROUNDS);
  expect(sizes.at(-1)).toBeGreaterThan(sizes[0] ?? 0);
  await service.kill('SIGKILL');
  await Promise.all(load.playing);
});
