// Kills the service under signed load. A move with a response must survive, as its receipt proves; a move without a response must
// be accepted completely or not at all. The simulation's checker judges the history of all rounds, before and after the retries.
// Each kill follows a number of responses, independent of the machine's speed. CRASH_SEED repeats a run.
import { copyFileSync } from 'node:fs';
import { expect } from 'vitest';
import { copyKeyFileForLog, defaultKeyFile } from '../../src/keys/key-file.ts';
import { backupDatabase } from '../../src/log/sqlite/backup.ts';
import { NO_LIMITS } from '../../src/moves/move.ts';
import { Checker } from '../forum/simulation/checker.ts';
import type { Stream } from '../forum/simulation/history.ts';
import { seededBy } from '../kit/random.ts';
import { isValidReceipt, readKeys, unkeptPromises } from '../kit/receipts.ts';
import { type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get } from '../kit/wire.ts';
import { derivedRows, faultsOf, readLines, rebuildLog } from './log-book.ts';
import { type Attempt, attempt, historyOf, Load, type Player, seatPlayers } from './players.ts';

export const PLAYERS = 8;
/** The maximum number of responses before a random kill. */
const ANSWERS_MAX = 200;
const SETTINGS = { IDEAS_MAX: '100000', VERIFIER_THREADS: '1' };

/** Kills the service after this number of responses in each round, or after a random number. */
export async function expectCrashesKeepMoves(rounds: number, killAfterAnswers: readonly number[]): Promise<void> {
  const random = seededBy('CRASH_SEED');
  const path = temporaryDatabase();
  const players = await seatPlayers(path, PLAYERS);
  let service = await startProcess(path, SETTINGS);
  let answered = 0;
  let unanswered = 0;
  let promised = 0;
  let receipted = 0;
  const history: Attempt[] = [];
  for (let round = 1; round <= rounds; round++) {
    const killAfter = killAfterAnswers[round - 1] ?? random.below(ANSWERS_MAX);
    promised += killAfter;
    const attempts = await playUntilKilled(service, killAfter);
    history.push(...attempts);
    service = await startProcess(path, SETTINGS);
    const atRestart = await expectCorrect(path, history);
    for (const { request, answer } of attempts) {
      const again = await attempt(service.url, request);
      expect(again.answer).toEqual(answer ?? expect.anything());
      history.push(again);
    }
    const afterwards = await expectCorrect(path, history);
    receipted += await expectValidReceipts(service, [...attempts, ...history.slice(-attempts.length)]);
    for (const [stream, lines] of atRestart) expect(afterwards.get(stream)?.slice(0, lines.length)).toEqual(lines);
    answered += attempts.filter(({ answer }) => answer !== undefined).length;
    unanswered += attempts.filter(({ answer }) => answer === undefined).length;
  }
  console.log(`${rounds} kills: ${answered} requests with a response, ${unanswered} without, ${receipted} receipts`);
  expect(answered).toBeGreaterThanOrEqual(promised);
  await expectRebuildIdentical(service, path, players);

  async function playUntilKilled(running: ServiceProcess, answers: number): Promise<readonly Attempt[]> {
    const load = new Load(running.url, players, random);
    await load.answered(answers);
    await running.kill('SIGKILL');
    await Promise.all(load.playing);
    return load.attempts;
  }
}

/** Expects a receipt for every signed request with a response, and verifies it with an independent library. */
async function expectValidReceipts({ url }: ServiceProcess, attempts: readonly Attempt[]): Promise<number> {
  const keys = await readKeys(url);
  const receipts = attempts.flatMap(({ receipt }) => receipt ?? []);
  for (const receipt of receipts) expect(await isValidReceipt(receipt, keys)).toBe(true);
  return receipts.length;
}

/** Expects lines that match the history and its receipts, and no faults found by fsck. Returns the lines. */
async function expectCorrect(
  path: string,
  attempts: readonly Attempt[],
): Promise<ReadonlyMap<Stream, readonly string[]>> {
  const lines = readLines(path);
  const receipts = attempts.flatMap(({ receipt }) => receipt ?? []);
  expect(unkeptPromises(receipts, lines)).toEqual([]);
  const requests = historyOf(attempts);
  expect(new Checker().check({ requests, lines, limits: NO_LIMITS, isComplete: false })).toEqual([]);
  expect(await faultsOf(path)).toEqual([]);
  return lines;
}

async function expectRebuildIdentical(
  service: ServiceProcess,
  path: string,
  players: readonly Player[],
): Promise<void> {
  const copy = `${path}.copy`;
  const { logId, copiedFrom } = await backupDatabase(path, copy);
  const views = await viewsOf(service, players);
  await rebuildLog(copy);
  expect(derivedRows(copy)).toEqual(derivedRows(path));
  await service.kill('SIGKILL');
  const fresh = `${path}.fresh`;
  copyFileSync(copy, fresh);
  await copyKeyFileForLog(defaultKeyFile(path, copiedFrom), defaultKeyFile(fresh, logId), logId);
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
