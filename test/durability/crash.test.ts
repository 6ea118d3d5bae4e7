// The service killed under signed load: an answered move is a promise, an unanswered one is all or nothing. A kill comes after
// so many answers, however fast the machine is. CRASH_ROUNDS sets the number of kills, CRASH_SEED brings a run back.
import { copyFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { backupDatabase } from '../../src/log/sqlite/backup.ts';
import { fsckDatabase } from '../../src/log/sqlite/fsck.ts';
import { rebuildDatabase } from '../../src/log/sqlite/repair.ts';
import { type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get } from '../kit/wire.ts';
import { derivedRows, eventsBySignature } from './log-book.ts';
import { type Attempt, Load, must, type Player, seatPlayers } from './players.ts';
import { seededBy } from './seed.ts';

const { CRASH_ROUNDS = '7' } = process.env;
const ROUNDS = Number(CRASH_ROUNDS);
const PLAYERS = 8;
/** Kills while the first requests arrive, beside the first commit, after a batch of every player's, and after many batches. */
const KILL_AFTER_ANSWERS = [0, 1, PLAYERS, 30, 200];
/** The other kills come at random. */
const ANSWERS_MAX = 200;
const SETTINGS = { IDEAS_MAX: '100000', VERIFIER_THREADS: '1' };

it(`keeps every answered move through ${ROUNDS} kills`, { timeout: 180_000 + ROUNDS * 10_000 }, async () => {
  const random = seededBy('CRASH_SEED');
  const path = temporaryDatabase();
  const players = await seatPlayers(path, PLAYERS);
  let service = await startProcess(path, SETTINGS);
  let answered = 0;
  let unanswered = 0;
  let promised = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const killAfter = KILL_AFTER_ANSWERS[round - 1] ?? random.below(ANSWERS_MAX);
    promised += killAfter;
    const attempts = await playUntilKilled(service, killAfter);
    service = await startProcess(path, SETTINGS);
    await settle(service, path, attempts);
    answered += attempts.filter(({ answer }) => answer !== undefined).length;
    unanswered += attempts.filter(({ answer }) => answer === undefined).length;
  }
  console.log(`${ROUNDS} kills: ${answered} answered, ${unanswered} unanswered`);
  expect(answered).toBeGreaterThanOrEqual(promised);
  await expectRebuildIdentical(service, path, players);

  async function playUntilKilled(running: ServiceProcess, answers: number): Promise<readonly Attempt[]> {
    const load = new Load(running.url, players, random);
    await load.answered(answers);
    await running.kill('SIGKILL');
    await Promise.all(load.playing);
    return load.attempts;
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
  return answers.map(({ status, body }) => ({ status, body: { ...body, now: null } }));
}
