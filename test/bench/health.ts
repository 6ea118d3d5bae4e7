// How long GET /health takes, requested over and over by a process that does nothing else.
import { latenciesOf } from './figures.ts';
import { during, type Span } from './load/span.ts';
import { begin, drive } from './processes.ts';

const PAUSE_MS = 3;

/** Milliseconds: 99 of 100 answers came sooner. */
export async function healthAlone(authority: string, forMillis: number): Promise<number> {
  const { samples } = await drive({ kind: 'probe', authority, paths: ['/health'], forMillis, pauseMillis: PAUSE_MS });
  return latenciesOf((samples[0] ?? []).map(({ millis }) => millis)).p99;
}

/** The same during other work, which is done here and reports when it took place. */
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
