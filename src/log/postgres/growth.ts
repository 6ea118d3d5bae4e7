// Wake-ups between nodes. They carry no data and may be lost, so that no append waits for them: NOTIFY inside its transaction
// would take one lock for the whole server. Each node notifies the others after its commits and listens to them; a lost wake-up
// is made up for by the next look at the heads of the followed streams.
import type { Client } from 'pg';
import { detach } from '../../process/detach.ts';
import { ALL_CHAMBERS } from '../log.ts';
import { toStream } from '../sql/sql.ts';
import type { Follower } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import { ANY_STREAM, HELLO, Notifier } from './growth-notifier.ts';

const RECONNECT_PAUSE_MS = 1_000;
const POLL_INTERVAL_MS = 5_000;

interface GrowthOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
}

export class Growth {
  readonly #options: GrowthOptions;
  readonly #notifier: Notifier;
  #follower: Follower = { followed: () => [], wake: () => {} };
  /** A node that is alone notifies nobody. */
  #hasOthers = false;
  /** The heads at the latest look at them. */
  #seen: ReadonlyMap<StreamId, number> = new Map();
  #isListening = false;
  #reconnects = 0;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #pollTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: GrowthOptions) {
    this.#options = options;
    this.#notifier = new Notifier(options);
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** Notifies the other nodes, if there are or may be others. */
  announce(streams: Iterable<StreamId>): void {
    if (this.#hasOthers || !this.isListening) this.#notifier.notify(streams);
  }

  follow(follower: Follower): void {
    this.#follower = follower;
    detach(this.#listen());
    this.#pollLater();
  }

  /** Listens again on another connection when this one is lost. */
  async #listen(): Promise<void> {
    const { connect, channel } = this.#options;
    let client: Client | undefined;
    try {
      client = await connect();
      client.on('notification', ({ payload = '', processId }) => this.#hear(payload, processId));
      await client.query(`LISTEN ${channel}`);
      client.once('end', () => {
        this.#isListening = false;
        this.#reconnects++;
        this.#listenLater();
      });
      this.#isListening = true;
      this.#notifier.notify([HELLO]);
      // Any stream may have grown before.
      this.#wake(ANY_STREAM);
    } catch {
      client?.end().catch(() => {});
      this.#listenLater();
    }
  }

  #listenLater(): void {
    if (!this.#isClosed) this.#reconnectTimer = setTimeout(() => detach(this.#listen()), RECONNECT_PAUSE_MS).unref();
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
    const poll = async () => {
      await this.#poll();
      this.#pollLater();
    };
    this.#pollTimer = setTimeout(() => detach(poll()), POLL_INTERVAL_MS).unref();
  }

  /** For notifications that were lost. */
  async #poll(): Promise<void> {
    if (!this.#hasOthers) this.#notifier.notify([HELLO]);
    const { followed, wake } = this.#follower;
    const streams = [...followed()];
    try {
      const heads = streams.length === 0 ? new Map() : await this.#options.heads(streams);
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
    clearTimeout(this.#reconnectTimer);
    clearTimeout(this.#pollTimer);
    this.#notifier.close();
  }
}
