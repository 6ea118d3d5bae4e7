// Compares the heads of the followed streams regularly, for notifications that were lost.
import { ALL_CHAMBERS } from '../log.ts';
import type { StreamId } from '../stream-id.ts';

const POLL_INTERVAL_MS = 5_000;

interface PollerOptions {
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
  readonly followed: () => Iterable<StreamId>;
  readonly wake: (stream: StreamId) => void;
  /** Called before each look at the heads. */
  readonly onPoll: () => void;
}

export class Poller {
  readonly #options: PollerOptions;
  #seen: ReadonlyMap<StreamId, number> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** One look after the other, however long one takes. */
  start(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(async () => {
      await this.#poll();
      this.start();
    }, POLL_INTERVAL_MS).unref();
  }

  async #poll(): Promise<void> {
    const { heads: read, followed, wake, onPoll } = this.#options;
    onPoll();
    const streams = [...followed()];
    try {
      const heads = streams.length === 0 ? new Map() : await read(streams);
      for (const [stream, head] of heads) {
        // Growth of all chambers, or of an agent's, shows in no head.
        const mayHaveGrown = stream === ALL_CHAMBERS || typeof stream === 'string' || this.#seen.get(stream) !== head;
        if (mayHaveGrown) wake(stream);
      }
      this.#seen = heads;
    } catch {
      // The next one compares with the heads of the one before.
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
