// `chambers audit FILE` against the minimum that any auditor does on one thread, each in a process of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { signedLines } from './logs/signed-lines.ts';
import { type Options, scaled } from './options.ts';
import type { Report } from './report.ts';
import { about, measureInRounds, rowOf } from './rounds.ts';
import { bound, compare } from './verdicts.ts';

const EVENTS = 100_000;
const COMMAND = fileURLToPath(new URL('../../dist/src/cli.js', import.meta.url));
const BASELINE = fileURLToPath(new URL('./baselines/audit-baseline.ts', import.meta.url));

export async function benchAudit(options: Options): Promise<Report> {
  const events = scaled(EVENTS, options);
  const path = signedLines(events);
  const series = await measureInRounds(
    [
      { name: 'audit FILE', measure: () => run([COMMAND, 'audit', path]) },
      { name: 'lines, JSON.parse, node:crypto (the baseline)', measure: () => run([BASELINE, path]) },
    ],
    options.runs,
  );
  const [audit, baseline] = series.map((each) => rowOf(each, 'events/s', ({ seconds }) => events / seconds));
  const [cpu, memory] = series.flatMap((each) => [
    rowOf(about('CPU of an event, all threads', each), 'µs', ({ cpuMicros }) => cpuMicros / events),
    rowOf(about('most memory', each), 'MiB', ({ mebibytes }) => mebibytes),
  ]);
  if (!audit || !baseline || !cpu || !memory) throw new Error('two programs must be measured');
  return {
    bench: `audit (${events} events in one file, the start of the process included)`,
    rows: [audit, baseline, cpu, memory],
    verdicts: [
      compare({ what: 'audit / baseline', of: audit, to: baseline, target: { is: 'at least', value: 0.6 } }),
      bound({ what: 'events a second', of: audit, target: { is: 'at least', value: 6_000 } }),
      bound({ what: 'most memory', of: memory, target: { is: 'at most', value: 200 } }),
    ],
  };
}

/** Makes a process write its resource usage to file descriptor 3 when it exits. */
const USAGE = `data:text/javascript,import{writeSync}from'node:fs';process.on('exit',()=>writeSync(3,JSON.stringify(process.resourceUsage())))`;

async function run(program: readonly string[]) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['--import', USAGE, ...program], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  });
  const [[code], usage] = await Promise.all([once(child, 'exit'), text(child.stdio[3] as NodeJS.ReadableStream)]);
  if (code !== 0) throw new Error(`${program.join(' ')} exited with ${code}`);
  const { userCPUTime, systemCPUTime, maxRSS }: NodeJS.ResourceUsage = JSON.parse(usage);
  const seconds = (performance.now() - startedAt) / 1000;
  return { seconds, cpuMicros: userCPUTime + systemCPUTime, mebibytes: maxRSS / 1024 };
}
