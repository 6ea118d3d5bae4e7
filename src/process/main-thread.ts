// Measures for which caller the main thread works. It is state of the module because it is about the thread, which all services of a
// process share; each payer's owner, which is one service, keeps what its work has cost. Code that has waited calls workFor again:
// until then the time counts for the caller that came in between.

export interface Payer {
  /** Is told of time that the main thread spent for it. */
  readonly charge: (millis: number) => void;
}

let payer: Payer | undefined;
let since = 0;
let isEndDue = false;

/** The time of the thread counts for this payer from now until the next call, or the end of this turn of the event loop. */
export function workFor(next: Payer | undefined): void {
  const now = performance.now();
  if (payer !== undefined) {
    worked += now - since;
    payer.charge((now - since) * overhead(now));
  }
  payer = next;
  since = now;
  if (next === undefined || isEndDue) return;
  isEndDue = true;
  setImmediate(endTurn);
}

const OVERHEAD_MAX = 3;
const OVERHEAD_EVERY_MS = 1_000;
let worked = 0;
let measuredAt = 0;
let utilization = performance.eventLoopUtilization();
let latestOverhead = 1;

/**
 * How many times as long the thread is busy as it works for payers. Parsing of requests, writing of responses and collecting of garbage
 * happen in addition, so each payer bears its part of them.
 */
function overhead(now: number): number {
  if (now - measuredAt < OVERHEAD_EVERY_MS) return latestOverhead;
  const { active } = performance.eventLoopUtilization(utilization);
  latestOverhead = Math.min(OVERHEAD_MAX, Math.max(1, active / worked));
  utilization = performance.eventLoopUtilization();
  measuredAt = now;
  worked = 0;
  return latestOverhead;
}

/** Nobody pays for the time in which the thread waits for the next event. */
function endTurn(): void {
  isEndDue = false;
  workFor(undefined);
}

/** The payer to be given to workFor after a wait. */
export function currentPayer(): Payer | undefined {
  return payer;
}

/** Waits, and then works again for the one that it works for now. */
export async function forSamePayer<Result>(waited: Promise<Result>): Promise<Result> {
  const before = payer;
  try {
    return await waited;
  } finally {
    workFor(before);
  }
}
