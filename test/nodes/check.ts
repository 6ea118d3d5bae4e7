// What must hold of the log after the load, in every scenario: no gap, no duplicate, every answered move once, the same lines at
// every node, and an auditor who finds nothing.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CLI, ROOT } from '../kit/programs.ts';
import { get } from '../kit/wire.ts';
import type { Answered, Seen } from './load.ts';

const PROBLEMS_MAX = 20;
const EVENTS_LIMIT = 10_000;

interface Line {
  readonly eventId: number;
  readonly chamberId: number | null;
  readonly did: string;
  readonly request: { readonly signature: string } | null;
}

export async function checkLog(
  urls: readonly string[],
  { answered, lines: received, problems: seen }: Seen,
): Promise<readonly string[]> {
  const [first, ...others] = urls as [string, ...string[]];
  const { body } = await get(first, '/chambers?limit=1');
  const chambers = Array.from({ length: body[0].chamberId }, (_, index) => `/chambers/${index + 1}/events`);
  const problems: string[] = [];
  const found = new Map<string, Line[]>();
  const agents = new Set<string>();
  const all: string[] = [];

  const check = async (path: string) => {
    const lines = await linesOf(first, path);
    for (const [index, line] of lines.entries()) {
      const event = JSON.parse(line) as Line;
      if (event.eventId !== index + 1) problems.push(`${path}: event ${event.eventId} is in place ${index + 1}`);
      if (event.chamberId !== null) agents.add(event.did);
      const signature = event.request?.signature;
      if (signature !== undefined) found.set(signature, [...(found.get(signature) ?? []), event]);
    }
    for (const other of others) {
      if ((await linesOf(other, path)).join() !== lines.join()) problems.push(`${path} differs at ${other}`);
    }
    return lines;
  };
  for (const path of chambers) all.push(...(await check(path)));
  for (const did of agents) await check(`/agents/${did}/events`);
  for (const [signature, events] of found) {
    if (events.length > 1) problems.push(`${signature} is in the log ${events.length} times`);
  }
  for (const each of answered) problems.push(...wrongAnswer(each, found.get(each.signature)));
  problems.push(...wrongOrder(received, all));
  const exit = await audit(first);
  if (exit.code !== 0) problems.push(`the audit ended with ${exit.code}: ${exit.said}`);
  return [...seen, ...problems].slice(0, PROBLEMS_MAX);
}

async function linesOf(url: string, path: string): Promise<readonly string[]> {
  const lines: string[] = [];
  for (;;) {
    const response = await fetch(`${url}${path}?after=${lines.length}&limit=${EVENTS_LIMIT}`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path} was answered ${response.status} ${text}`);
    const page = text.split('\n').slice(0, -1);
    lines.push(...page);
    if (page.length < EVENTS_LIMIT) return lines;
  }
}

function wrongAnswer({ signature, body }: Answered, [line]: readonly Line[] = []): readonly string[] {
  if (line === undefined) return [`an answered move is not in the log: ${JSON.stringify(body)} ${signature}`];
  const isSame =
    (body.eventId ?? line.eventId) === line.eventId && (body.chamberId ?? line.chamberId) === line.chamberId;
  return isSame ? [] : [`event ${line.eventId} of ${line.chamberId} was answered ${JSON.stringify(body)}`];
}

/** The consumer of all chambers has every line once, and each chamber's in order. */
function wrongOrder(received: readonly string[], all: readonly string[]): readonly string[] {
  const chamberOf = (line: string) => Number((JSON.parse(line) as Line).chamberId);
  const keyed = received.map((line) => [chamberOf(line), line] as const);
  // The sort is stable.
  const sorted = keyed.sort(([one], [other]) => one - other).map(([, line]) => line);
  if (sorted.length !== all.length) return [`the consumer received ${sorted.length} lines of ${all.length}`];
  return sorted.every((line, index) => line === all[index]) ? [] : ['the consumer received lines in another order'];
}

async function audit(url: string): Promise<{ readonly code: number | null; readonly said: string }> {
  const child = spawn(process.execPath, [CLI, 'audit', url], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said };
}
