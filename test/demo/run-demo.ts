// Runs `npm run demo` like a user.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { auditFile } from '../../src/audit/audit.ts';
import type { ChamberEvent } from '../../src/vocabulary/events.ts';
import { CLI } from '../kit/programs.ts';

export const SLOW = { timeout: 150_000 };

export async function runDemo(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const demo = spawn(process.execPath, [CLI, 'demo', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const [out, err, [exitCode]] = await Promise.all([text(demo.stdout), text(demo.stderr), once(demo, 'exit')]);
  return { out, err, exitCode };
}

/** Returns whether the chamber was committed before the first of its deadlines. */
async function wasPaced(file: string): Promise<boolean> {
  const events = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ChamberEvent);
  const created = events[0];
  const committed = events.find(({ type }) => type === 'chamber.committed');
  if (created?.type !== 'chamber.created' || committed === undefined) throw new Error('the chamber is not committed');
  return Date.parse(committed.ts) < Date.parse(created.payload.deadlines.lobbyDeadline);
}

/** Expects the same root on the chain and a token for each graduate; with `words`, also that a node was killed. */
export async function expectDemoToEnd(words: readonly string[]): Promise<void> {
  const { out, err, exitCode } = await runDemo(words);
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
  expect(out.includes('killed node 2 of 3, which serves chamber 1')).toBe(words.length > 0);
  const roots = [...out.matchAll(/^root .*(0x[0-9a-f]{64})/gm)].map(([, root]) => root);
  expect(roots).toHaveLength(2);
  expect(roots[0]).toBe(roots[1]);
  expect(out.match(/^token of (REPAIR|RIVER) +0x[0-9a-fA-F]{40}$/gm)).toHaveLength(2);
  expect(out).toContain('audited: verified');
  const [file = ''] = /\S+\.ndjson$/m.exec(out) ?? [];
  expect(await wasPaced(file)).toBe(true);
  expect(await auditFile(file, {})).toMatchObject({ verdict: 'verified', counts: { verified: 18 } });
}
