// Checks the log after the load of a scenario: it matches the histories and receipts, every node has the same lines, and the
// auditor reports nothing.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Mirror } from '../../src/mirror/mirror.ts';
import { NO_LIMITS } from '../../src/moves/move.ts';
import { Checker } from '../forum/simulation/checker.ts';
import type { Stream } from '../forum/simulation/history.ts';
import { CLI, ROOT } from '../kit/programs.ts';
import { isValidReceipt, readKeys, unkeptPromises } from '../kit/receipts.ts';
import { get } from '../kit/wire.ts';
import type { Seen } from './load.ts';

const PROBLEMS_MAX = 20;
const EVENTS_LIMIT = 10_000;
/** A killed publisher's lease has to end first. */
const PUBLISHED_MS_MAX = 20_000;

interface Line {
  readonly chamberId: number | null;
  readonly did: string;
}

export async function checkLog(
  urls: readonly string[],
  { requests, receipts, lines: received, problems: seen }: Seen,
): Promise<readonly string[]> {
  const [first, ...others] = urls as [string, ...string[]];
  const { body } = await get(first, '/chambers?limit=1');
  const problems: string[] = [];
  const lines = new Map<Stream, readonly string[]>();

  const load = async (stream: Stream, path: string) => {
    const loaded = await linesOf(first, path);
    for (const other of others) {
      if ((await linesOf(other, path)).join() !== loaded.join()) problems.push(`${path} differs at ${other}`);
    }
    lines.set(stream, loaded);
  };
  for (let chamberId = 1; chamberId <= body[0].chamberId; chamberId++) {
    await load(chamberId, `/chambers/${chamberId}/events`);
  }
  const all = [...lines.values()].flat();
  const agents = new Set(all.map((line) => (JSON.parse(line) as Line).did));
  for (const did of agents) await load(did, `/agents/${did}/events`);
  // The history lacks the requests from before the load.
  problems.push(...new Checker().check({ requests, lines, limits: NO_LIMITS, isComplete: false }));
  problems.push(...wrongOrder(received, all));
  problems.push(...unkeptPromises(receipts, lines));
  const keys = await readKeys(first);
  for (const receipt of receipts) {
    if (!(await isValidReceipt(receipt, keys))) problems.push(`a receipt does not verify: ${JSON.stringify(receipt)}`);
  }
  problems.push(...(await mirrored(urls, all.length + [...agents].length)));
  const exit = await audit(first);
  if (exit.code !== 0) problems.push(`the audit exited with ${exit.code}: ${exit.output}`);
  return [...seen, ...problems].slice(0, PROBLEMS_MAX);
}

/** Returns the problems of the logs that the nodes publish, which must be complete and equal. */
async function mirrored(urls: readonly string[], linesMin: number): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mirror-'));
  try {
    let size = 0;
    for (const url of urls) {
      for (const deadline = performance.now() + PUBLISHED_MS_MAX; performance.now() < deadline; await sleep(200)) {
        const mirror = await Mirror.open({ url, folder });
        const step = await mirror.step().finally(() => mirror.close());
        if (step.size < size) return [`the checkpoint at ${url} covers ${step.size} lines, after one of ${size}`];
        size = step.size;
        if (size >= linesMin) break;
      }
    }
    return size >= linesMin ? [] : [`the checkpoint covers ${size} lines, but there are at least ${linesMin}`];
  } catch (error) {
    return [`the mirror: ${(error as Error).message}`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function linesOf(url: string, path: string): Promise<readonly string[]> {
  const lines: string[] = [];
  for (;;) {
    const response = await fetch(`${url}${path}?after=${lines.length}&limit=${EVENTS_LIMIT}`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path} returned ${response.status} ${text}`);
    const page = text.split('\n').slice(0, -1);
    lines.push(...page);
    if (page.length < EVENTS_LIMIT) return lines;
  }
}

/** Checks that the consumer of all chambers has every line once, and each chamber's in order. */
function wrongOrder(received: readonly string[], all: readonly string[]): readonly string[] {
  const chamberOf = (line: string) => Number((JSON.parse(line) as Line).chamberId);
  const keyed = received.map((line) => [chamberOf(line), line] as const);
  // The sort is stable.
  const sorted = keyed.sort(([one], [other]) => one - other).map(([, line]) => line);
  if (sorted.length !== all.length) return [`the consumer received ${sorted.length} lines of ${all.length}`];
  return sorted.every((line, index) => line === all[index]) ? [] : ['the consumer received lines in a different order'];
}

async function audit(url: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [CLI, 'audit', url], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}
