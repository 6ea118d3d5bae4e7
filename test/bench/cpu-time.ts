// The CPU that processes use within a span that is known only afterwards: read again and again meanwhile.
import { cpuMillis } from '../kit/process-tree.ts';
import { during, epochNow, type Span } from './load/span.ts';

const EVERY_MS = 50;

export interface CpuWatch {
  /** Milliseconds for each second of the span, of every process with its children. */
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
