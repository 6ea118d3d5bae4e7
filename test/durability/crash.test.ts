// The service killed at random moments under signed load: an answered move is a promise, an unanswered one is all or nothing.
// CRASH_ROUNDS sets the number of rounds, CRASH_SEED brings a run back.
import { copyFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { backupDatabase } from '../../src/log/sqlite/backup.ts';
import { fsckDatabase } from '../../src/log/sqlite/fsck.ts';
import { rebuildDatabase } from '../../src/log/sqlite/repair.ts';
import { type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get } from '../kit/wire.ts';
import { derivedRows, eventsBySignature } from './log-book.ts';
import { type Attempt, must, type Player, play, seatPlayers } from './players.ts';
import { seededBy } from './seed.ts';

const { CRASH_ROUNDS = '12' } = process.env;
const ROUNDS = Number(CRASH_ROUNDS);
const PLAYERS = 8;
const KILL_AFTER_MS_MAX = 400;
const SETTINGS = { IDEAS_MAX: '100000', VERIFIER_THREADS: '1' };

it(`keeps every answered move through ${ROUNDS} kills`, { timeout: 60_000 + ROUNDS * 10_000 }, async () => {
  const random = seededBy('CRASH_SEED');
  const path = temporaryDatabase();
  const players = await seatPlayers(path, PLAYERS);
  let service = await startProcess(path, SETTINGS);
  let answered = 0;
  let unanswered = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const attempts = await playUntilKilled(service, players);
    service = await startProcess(path, SETTINGS);
    await settle(service, path, attempts);
    answered += attempts.filter(({ answer }) => answer !== undefined).length;
    unanswered += attempts.filter(({ answer }) => answer === undefined).length;
  }
  console.log(`${ROUNDS} kills: ${answered} answered, ${unanswered} unanswered`);
  expect(answered).toBeGreaterThan(ROUNDS);
  await expectRebuildIdentical(service, path, players);

  async function playUntilKilled(running: ServiceProcess, seated: readonly Player[]): Promise<readonly Attempt[]> {
    const playing = Promise.all(seated.map((player) => play(running.url, player, random)));
    await sleep(random.below(KILL_AFTER_MS_MAX));
    await running.kill('SIGKILL');
    return (await playing).flat();
  }
});

/** Answered: in the log once, and answered the same again. Unanswered: once or not at all, and settled by the same bytes. */
async function settle(service: ServiceProcess, path: string, attempts: readonly Attempt[]): Promise<void> {
  const atRestart = eventsBySignature(path);
  for (const { request, answer } of attempts) {
    const { signature } = request.headers;
    if (answer !== undefined && signature !== undefined) expect(atRestart.has(signature)).toBe(true);
    const again = await must(service.url, request);
    if (answer !== undefined) expect(again).toEqual(answer);
  }
  const afterwards = eventsBySignature(path);
  for (const { request } of attempts) {
    const { signature } = request.headers;
    if (signature === undefined) continue;
    expect(afterwards.has(signature)).toBe(true);
    if (atRestart.has(signature)) expect(afterwards.get(signature)).toEqual(atRestart.get(signature));
  }
  const faults: unknown[] = [];
  fsckDatabase(path, (fault) => faults.push(fault));
  expect(faults).toEqual([]);
}

async function expectRebuildIdentical(
  service: ServiceProcess,
  path: string,
  players: readonly Player[],
): Promise<void> {
  const copy = `${path}.copy`;
  await backupDatabase(path, copy);
  const views = await viewsOf(service, players);
  rebuildDatabase(copy);
  expect(derivedRows(copy)).toEqual(derivedRows(path));
  await service.kill('SIGKILL');
  const fresh = `${path}.fresh`;
  copyFileSync(copy, fresh);
  expect(await viewsOf(await startProcess(fresh, SETTINGS), players)).toEqual(views);
}

async function viewsOf({ url }: ServiceProcess, players: readonly Player[]): Promise<readonly unknown[]> {
  const paths = players.flatMap(({ proposing, debating }) => [
    `/chambers/${proposing}`,
    `/chambers/${proposing}/ideas`,
    `/chambers/${proposing}/merkle-preview`,
    `/chambers/${debating}`,
    `/chambers/${debating}/merkle-preview`,
  ]);
  const answers = await Promise.all(['/chambers', ...paths].map((path) => get(url, path)));
  return answers.map(({ status, body }) => ({ status, body }));
}
