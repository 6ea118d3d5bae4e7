// Wake-ups between nodes. They carry no data and may be lost, so that no append waits for them: NOTIFY inside its transaction
// would take one lock for the whole server. Each node notifies the others after its commits, on a connection that does not wait
// for the disk; a lost wake-up is made up for by the next look at the heads of the followed streams.
import type { Client } from 'pg';
import { ALL_CHAMBERS, type StreamId } from '../log.ts';
import type { Follower } from '../store.ts';

/** Heads are compared this often, for wake-ups that were lost. */
const POLL_INTERVAL_MS = 5_000;
const RECONNECT_PAUSE_MS = 1_000;
/** PostgreSQL's limit is 8,000; a longer list becomes a call to look at every followed stream. */
const PAYLOAD_BYTES_MAX = 7_900;
const ANY_STREAM = '';
/** From a node that has begun to listen, or has heard of no other. The others respond, and any stream may have grown. */
const HELLO = '?';

interface GrowthOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
}

export class Growth {
  readonly #options: GrowthOptions;
  readonly #grown = new Set<StreamId>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #seen: ReadonlyMap<StreamId, number> = new Map();
  #follower: Follower | undefined;
  #notifier: Client | undefined;
  #isSending = false;
  #isListening = false;
  /** A node that is alone notifies nobody. */
  #hasOthers = false;
  #reconnects = 0;
  #isClosed = false;

  constructor(options: GrowthOptions) {
    this.#options = options;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** Notifies the other nodes. Streams that grow while a notification is under way go into the next one. */
  announce(streams: Iterable<StreamId>): void {
    if (this.#hasOthers || !this.#isListening) this.#tell(streams);
  }

  #tell(streams: Iterable<StreamId>): void {
    for (const stream of streams) this.#grown.add(stream);
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    try {
      while (this.#grown.size > 0 && !this.#isClosed) {
        const payload = payloadOf(this.#grown);
        this.#grown.clear();
        this.#notifier ??= await this.#connectNotifier();
        await this.#notifier.query({
          name: 'notify',
          text: 'SELECT pg_notify($1, $2)',
          values: [this.#options.channel, payload],
        });
      }
    } catch {
      this.#notifier = undefined;
    } finally {
      this.#isSending = false;
    }
  }

  async #connectNotifier(): Promise<Client> {
    const client = await this.#options.connect();
    await client.query('SET synchronous_commit = off');
    client.once('end', () => {
      this.#notifier = undefined;
    });
    return client;
  }

  follow(follower: Follower): void {
    this.#follower = follower;
    void this.#listen();
    this.#later(POLL_INTERVAL_MS, () => this.#poll());
  }

  async #listen(): Promise<void> {
    const again = () => this.#later(RECONNECT_PAUSE_MS, () => this.#listen());
    let client: Client | undefined;
    try {
      client = await this.#options.connect();
      client.on('notification', ({ payload = ANY_STREAM, processId }) => {
        if (processId === this.#notifierId) return;
        // What has grown while this node took itself to be alone was told to nobody.
        if (!this.#hasOthers || payload === HELLO) this.#tell([ANY_STREAM]);
        this.#hasOthers = true;
        this.#wake(payload);
      });
      await client.query(`LISTEN ${this.#options.channel}`);
      client.once('end', () => {
        this.#isListening = false;
        this.#reconnects++;
        again();
      });
      this.#isListening = true;
      this.#tell([HELLO]);
      // Any stream may have grown before.
      this.#wake(ANY_STREAM);
    } catch {
      void client?.end().catch(() => {});
      again();
    }
  }

  get #notifierId(): number | undefined {
    return (this.#notifier as (Client & { readonly processID?: number }) | undefined)?.processID;
  }

  #wake(payload: string): void {
    const { followed = () => [], wake = () => {} } = this.#follower ?? {};
    const isAny = payload === ANY_STREAM || payload === HELLO;
    const streams = isAny ? [...followed()] : payload.split(' ').map(toStream);
    for (const stream of [...streams, ALL_CHAMBERS]) wake(stream);
  }

  async #poll(): Promise<void> {
    if (!this.#hasOthers) this.#tell([HELLO]);
    const followed = [...(this.#follower?.followed() ?? [])];
    try {
      const heads = followed.length === 0 ? new Map() : await this.#options.heads(followed);
      for (const [stream, head] of heads) {
        // Growth of all chambers, or of an agent's, shows in no head.
        const mayHaveGrown = stream === ALL_CHAMBERS || typeof stream === 'string' || this.#seen.get(stream) !== head;
        if (mayHaveGrown) this.#follower?.wake(stream);
      }
      this.#seen = heads;
    } catch {
      // The next one compares with the heads of the one before.
    }
    this.#later(POLL_INTERVAL_MS, () => this.#poll());
  }

  #later(millis: number, act: () => Promise<void>): void {
    if (this.#isClosed) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void act();
    }, millis).unref();
    this.#timers.add(timer);
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

function payloadOf(streams: ReadonlySet<StreamId>): string {
  if (streams.has(HELLO)) return HELLO;
  const listed = [...streams].join(' ');
  return streams.has(ANY_STREAM) || Buffer.byteLength(listed) > PAYLOAD_BYTES_MAX ? ANY_STREAM : listed;
}

/** A chamber's id in decimal, or a DID. */
export function toStream(text: string): StreamId {
  return /^\d+$/.test(text) ? Number(text) : text;
}
