// Wake-ups between nodes. They carry no data and may be lost, so that no append waits for them: NOTIFY inside its transaction
// would take one lock for the whole server. Each node notifies the others after its commits and listens to them; a lost wake-up
// is made up for by the next look at the heads of the followed streams.
import type { Client } from 'pg';
import { ALL_CHAMBERS } from '../log.ts';
import type { Follower } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import { Listener } from './growth-listener.ts';
import { ANY_STREAM, HELLO, Notifier } from './growth-notifier.ts';

const POLL_INTERVAL_MS = 5_000;

interface GrowthOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
}

export class Growth {
  readonly #heads: GrowthOptions['heads'];
  readonly #notifier: Notifier;
  readonly #listener: Listener;
  #follower: Follower = { followed: () => [], wake: () => {} };
  /** A node that is alone notifies nobody. */
  #hasOthers = false;
  /** The heads at the latest look at them. */
  #seen: ReadonlyMap<StreamId, number> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: GrowthOptions) {
    this.#heads = options.heads;
    this.#notifier = new Notifier(options);
    this.#listener = new Listener({
      ...options,
      onMessage: (payload, processId) => this.#hear(payload, processId),
      onListening: () => {
        this.#notifier.notify([HELLO]);
        // Any stream may have grown before.
        this.#wake(ANY_STREAM);
      },
    });
  }

  get isListening(): boolean {
    return this.#listener.isListening;
  }

  get reconnects(): number {
    return this.#listener.reconnects;
  }

  /** Notifies the other nodes, if there are or may be others. */
  announce(streams: Iterable<StreamId>): void {
    if (this.#hasOthers || !this.isListening) this.#notifier.notify(streams);
  }

  follow(follower: Follower): void {
    this.#follower = follower;
    void this.#listener.start();
    this.#pollLater();
  }

  #hear(payload: string, processId: number): void {
    if (processId === this.#notifier.processId) return;
    // What has grown while this node took itself to be alone was told to nobody.
    if (!this.#hasOthers || payload === HELLO) this.#notifier.notify([ANY_STREAM]);
    this.#hasOthers = true;
    this.#wake(payload);
  }

  #wake(payload: string): void {
    const { followed, wake } = this.#follower;
    const isAny = payload === ANY_STREAM || payload === HELLO;
    const streams = isAny ? [...followed()] : payload.split(' ').map(toStream);
    for (const stream of [...streams, ALL_CHAMBERS]) wake(stream);
  }

  /** One look after the other, however long one takes. */
  #pollLater(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(async () => {
      await this.#poll();
      this.#pollLater();
    }, POLL_INTERVAL_MS).unref();
  }

  /** For notifications that were lost. */
  async #poll(): Promise<void> {
    if (!this.#hasOthers) this.#notifier.notify([HELLO]);
    const { followed, wake } = this.#follower;
    const streams = [...followed()];
    try {
      const heads = streams.length === 0 ? new Map() : await this.#heads(streams);
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
    this.#notifier.close();
    this.#listener.close();
  }
}

/** A chamber's id in decimal, or a DID. */
export function toStream(text: string): StreamId {
  return /^\d+$/.test(text) ? Number(text) : text;
}
