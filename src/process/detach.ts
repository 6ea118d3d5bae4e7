// Work that nobody waits for. A promise rejected without a handler would end the process, so detached work always has one: this is the
// only way to start it, since the linter rejects floating promises and `void`.

/** A failure of detached work that its caller expects none of: a bug, which is reported and ends nothing. */
class DetachedFailure extends Error {
  override readonly name = 'DetachedFailure';
}

/** Lets the work run on its own. `onFailure` decides what a failure means; by default it is reported as a warning of the process. */
export function detach(work: Promise<unknown>, onFailure: (error: unknown) => void = report): void {
  work.catch(onFailure).catch(report);
}

/** The service's log has the process's warnings; in other programs Node prints them. */
function report(error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  process.emitWarning(new DetachedFailure(`background work failed: ${reason}`, { cause: error }));
}

/** Runs the work now, and again each time the interval after it ended, until the returned function is called. It keeps no process alive. */
export function repeat(work: () => Promise<void>, intervalMillis: number): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const run = async () => {
    await work().catch(report);
    if (!isStopped) timer = setTimeout(() => detach(run()), intervalMillis).unref();
  };
  detach(run());
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
