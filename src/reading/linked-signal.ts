import { timerMillis } from './waiting.ts';

/**
 * A signal that aborts together with the outer one, after the time limit, or when abort() is called; release() disables all three.
 * AbortSignal.any over AbortSignal.timeout is not enough: Node 20 may garbage-collect both, and then the timeout never fires.
 */
export function linkedSignal(
  outer: AbortSignal | undefined,
  limitMillis?: number,
): { readonly signal: AbortSignal; readonly abort: (reason?: Error) => void; readonly release: () => void } {
  const controller = new AbortController();
  const follow = () => controller.abort(outer?.reason);
  const expire = () => controller.abort(new Error(`timed out after ${limitMillis} ms`));
  const timer = limitMillis === undefined ? undefined : setTimeout(expire, timerMillis(limitMillis));
  outer?.addEventListener('abort', follow, { once: true });
  if (outer?.aborted) follow();
  const release = () => {
    clearTimeout(timer);
    outer?.removeEventListener('abort', follow);
  };
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), release };
}
