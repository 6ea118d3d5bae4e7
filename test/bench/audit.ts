// `chambers audit FILE` beside the least that any auditor does on one thread, each as a process of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { signedLines } from './logs/signed-lines.ts';
import { type Options, scaled } from './options.ts';
import type { Report } from './report.ts';
import { measureInRounds, rowOf } from './rounds.ts';
import { bound, compare } from './verdicts.ts';

const EVENTS = 100_000;
const COMMAND = fileURLToPath(new URL('../../dist/src/cli.js', import.meta.url));
const FLOOR = fileURLToPath(new URL('./floors/audit-floor.ts', import.meta.url));

export async function benchAudit(options: Options): Promise<Report> {
  const events = scaled(EVENTS, options);
  const path = signedLines(events);
  const series = await measureInRounds(
    [
      { name: 'audit FILE', measure: () => secondsOf([COMMAND, 'audit', path]) },
      { name: 'lines, JSON.parse, node:crypto (the floor)', measure: () => secondsOf([FLOOR, path]) },
    ],
    options.runs,
  );
  const [audit, floor] = series.map((each) => rowOf(each, 'events/s', (seconds) => events / seconds));
  if (!audit || !floor) throw new Error('two programs were measured');
  return {
    bench: `audit (${events} events in one file, the start of the process included)`,
    rows: [audit, floor],
    verdicts: [
      compare({ what: 'audit / floor', of: audit, to: floor, target: { is: 'at least', value: 0.6 } }),
      bound({ what: 'events a second', of: audit, target: { is: 'at least', value: 6_000 } }),
    ],
  };
}

async function secondsOf(program: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, program, { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${program.join(' ')} ended with ${code}`);
  return (performance.now() - startedAt) / 1000;
}
