// Samples the CPU time of processes, so that it is known for a span that is determined only afterwards.
import { cpuMillis } from '../kit/process-tree.ts';
import { during, epochNow, type Span } from './load/span.ts';

const EVERY_MS = 50;

export interface CpuWatch {
  /** Milliseconds of CPU per second of the span, over all processes and their children. */
  readonly perSecond: (span: Span) => readonly number[];
  readonly end: () => void;
}

export function watchCpu(pids: readonly number[]): CpuWatch {
  const samples: { readonly at: number; readonly millis: readonly number[] }[] = [];
  const timer = setInterval(() => samples.push({ at: epochNow(), millis: pids.map(cpuMillis) }), EVERY_MS);
  const perSecond = (span: Span) => {
    const [first, ...others] = during(samples, span);
    const last = others.at(-1);
    if (first === undefined || last === undefined) throw new Error('the run was too short to measure its CPU');
    const seconds = (last.at - first.at) / 1_000;
    return pids.map((_, index) => ((last.millis[index] ?? 0) - (first.millis[index] ?? 0)) / seconds);
  };
  return { perSecond, end: () => clearInterval(timer) };
}
