// The results of deliveries, per callback. They are written in batches, because a transaction for each would compete with moves. A crash
// loses the latest results, which affects only GET /me/callback.
import type { CallbackStore, StoredCallback } from '../log/callbacks.ts';
import type { Millis } from '../vocabulary/values.ts';

const FAILED_DUTIES_MAX = 50;
const FAILING_MS_MAX = 86_400_000;
const GONE = 410;

export class Results {
  readonly #store: CallbackStore;
  /** By DID. */
  readonly #unwritten = new Map<string, StoredCallback>();

  constructor(store: CallbackStore) {
    this.#store = store;
  }

  /** Resolves to the agent's callback; undefined if the agent has none or the service has removed it. */
  async current(did: string): Promise<(StoredCallback & { readonly url: string }) | undefined> {
    const stored = await this.#store.get(did);
    const unwritten = this.#unwritten.get(did);
    const callback = unwritten?.since === stored?.since ? (unwritten ?? stored) : stored;
    return callback !== undefined && isCalled(callback) ? callback : undefined;
  }

  /** Records an attempt. `status` is null if there was no complete response. */
  tried(callback: StoredCallback, { at, status }: { readonly at: Millis; readonly status: number | null }): void {
    const tried = { ...callback, last: { at, status } };
    if (isSuccess(status)) this.#unwritten.set(callback.did, { ...tried, failures: 0, succeededAt: at });
    else if (status === GONE) this.#unwritten.set(callback.did, { ...tried, url: null, removed: 'gone' });
    else this.#unwritten.set(callback.did, tried);
  }

  /** Records a duty that ended without a successful attempt. */
  missed(callback: StoredCallback, at: Millis): void {
    const failures = callback.failures + 1;
    const failingFor = at - (callback.succeededAt ?? callback.since);
    const isRemoved = failures >= FAILED_DUTIES_MAX && failingFor >= FAILING_MS_MAX;
    const removal = isRemoved ? ({ url: null, removed: 'failing' } as const) : {};
    this.#unwritten.set(callback.did, { ...callback, failures, ...removal });
  }

  /** Rejects with the store's error; the results are then kept for the next write. */
  async write(): Promise<void> {
    const changed = [...this.#unwritten.values()];
    if (changed.length === 0) return;
    await this.#store.record(changed);
    for (const each of changed) if (this.#unwritten.get(each.did) === each) this.#unwritten.delete(each.did);
  }
}

function isCalled(callback: StoredCallback): callback is StoredCallback & { readonly url: string } {
  return callback.url !== null;
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300;
}
