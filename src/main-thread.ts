// Measures for which caller the main thread works. A process has one such thread, so this is state of the module; each payer's owner
// keeps what its work has cost. Code that has waited calls workFor again: until then the time counts for the caller that came in between.

export interface Payer {
  /** Is told of time that the main thread spent for it. */
  readonly charge: (millis: number) => void;
}

let payer: Payer | undefined;
let since = 0;
let isEndDue = false;

/** From now until the next call, or the end of this turn of the event loop, the time of the thread counts for this payer. */
export function workFor(next: Payer | undefined): void {
  const now = performance.now();
  payer?.charge(now - since);
  payer = next;
  since = now;
  if (next === undefined || isEndDue) return;
  isEndDue = true;
  setImmediate(endTurn);
}

/** Nobody pays for the time in which the thread waits for the next event. */
function endTurn(): void {
  isEndDue = false;
  workFor(undefined);
}

/** To be given to workFor after a wait. */
export function currentPayer(): Payer | undefined {
  return payer;
}
