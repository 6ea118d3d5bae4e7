// Wake-ups between nodes. They carry no data and may be lost, so that no append waits for them: NOTIFY inside its transaction
// would take one lock for the whole server. Each node notifies the others after its commits and listens to them; a lost wake-up
// is made up for by the next look at the heads of the followed streams.
import type { Client } from 'pg';
import { ALL_CHAMBERS } from '../log.ts';
import type { Follower } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import { Listener } from './growth-listener.ts';
import { ANY_STREAM, HELLO, Notifier } from './growth-notifier.ts';
import { Poller } from './growth-poller.ts';

interface GrowthOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
}

export class Growth {
  readonly #notifier: Notifier;
  readonly #listener: Listener;
  readonly #poller: Poller;
  #follower: Follower = { followed: () => [], wake: () => {} };
  /** A node that is alone notifies nobody. */
  #hasOthers = false;

  constructor(options: GrowthOptions) {
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
    this.#poller = new Poller({
      ...options,
      followed: () => this.#follower.followed(),
      wake: (stream) => this.#follower.wake(stream),
      onPoll: () => {
        if (!this.#hasOthers) this.#notifier.notify([HELLO]);
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
    this.#poller.start();
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

  close(): void {
    this.#notifier.close();
    this.#listener.close();
    this.#poller.close();
  }
}

/** A chamber's id in decimal, or a DID. */
export function toStream(text: string): StreamId {
  return /^\d+$/.test(text) ? Number(text) : text;
}
