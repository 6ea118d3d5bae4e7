// Measures the latency of GET /health, which a separate process requests continuously.
import { latenciesOf } from './figures.ts';
import { during, type Span } from './load/span.ts';
import { begin, drive } from './processes.ts';

const PAUSE_MS = 3;

/** Returns the 99th percentile, in milliseconds. */
export async function healthAlone(authority: string, forMillis: number): Promise<number> {
  const { samples } = await drive({ kind: 'probe', authority, paths: ['/health'], forMillis, pauseMillis: PAUSE_MS });
  return latenciesOf((samples[0] ?? []).map(({ millis }) => millis)).p99;
}

/** Measures the same while `work` runs in this process; only requests within its span count. */
export async function healthDuring<Work extends { readonly span: Span }>(authority: string, work: () => Promise<Work>) {
  const asking = begin({ kind: 'probe', authority, paths: ['/health'], pauseMillis: PAUSE_MS });
  try {
    const done = await work();
    asking.interrupt();
    const { samples } = await asking.result;
    const millis = during(samples[0] ?? [], done.span).map((sample) => sample.millis);
    return { done, p99: latenciesOf(millis).p99 };
  } finally {
    asking.release();
  }
}
