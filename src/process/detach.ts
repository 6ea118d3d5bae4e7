// Starts work that nobody awaits. An unhandled rejection would end the process, so all such work starts here: the linter rejects floating
// promises and `void`.

/** Detached work failed unexpectedly. This is a bug; it is reported and does not end the process. */
class DetachedFailure extends Error {
  override readonly name = 'DetachedFailure';
}

/** Passes failures to `onFailure`; by default they become process warnings. */
export function detach(work: Promise<unknown>, onFailure: (error: unknown) => void = report): void {
  work.catch(onFailure).catch(report);
}

/** The service logs such warnings; in other programs Node prints them. */
function report(error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  process.emitWarning(new DetachedFailure(`background work failed: ${reason}`, { cause: error }));
}

/** Runs the work now, and again an interval after each run ends, until the returned function is called. Does not keep the process alive. */
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
