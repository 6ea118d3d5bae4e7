// A signal that follows another one, a time limit and its owner. Node 20 may collect what AbortSignal.any is waiting for
// together with AbortSignal.timeout, and the limit never comes.

export interface Leash {
  readonly signal: AbortSignal;
  abort(): void;
  /** Lets go of the other signal and of the timer. */
  release(): void;
}

export function leash(outer: AbortSignal | undefined, limitMillis?: number): Leash {
  const controller = new AbortController();
  const follow = () => controller.abort(outer?.reason);
  const expire = () => controller.abort(new Error(`nothing came within ${limitMillis} ms`));
  const timer = limitMillis === undefined ? undefined : setTimeout(expire, limitMillis);
  outer?.addEventListener('abort', follow, { once: true });
  if (outer?.aborted) follow();
  return {
    signal: controller.signal,
    abort: () => controller.abort(),
    release: () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', follow);
    },
  };
}
