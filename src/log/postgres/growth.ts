// Wake-ups between nodes. They carry no data and may be lost, so no append waits for them: NOTIFY inside its transaction would take one
// lock for the whole server. Each node listens and notifies on one connection. A look at the heads of the followed streams makes up for
// lost wake-ups.
import type { Client } from 'pg';
import { detach, repeat } from '../../process/detach.ts';
import { ALL_CHAMBERS } from '../log.ts';
import { toStream } from '../sql/sql.ts';
import type { Follower } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import { backendOf, NOT_DURABLY, prepared } from './session.ts';

const RECONNECT_PAUSE_MS = 1_000;
const POLL_INTERVAL_MS = 5_000;
/** PostgreSQL's limit is 8,000; ANY_STREAM replaces a longer list. */
const PAYLOAD_BYTES_MAX = 7_900;
const ANY_STREAM = '';
/** A node that begins to listen, or has heard of no other, sends it. The others respond, and any stream may have grown. */
const HELLO = '?';
/** A line was withheld. */
const WITHHELD = '!';

interface GrowthOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
  /** Called when another node may have withheld a line. */
  readonly onWithheld: () => void;
}

export class Growth {
  readonly #options: GrowthOptions;
  #follower: Follower = { followed: () => [], wake: () => {} };
  /** Undefined while there is none. */
  #client: Client | undefined;
  #reconnects = 0;
  /** A node that is alone notifies nobody. */
  #hasOthers = false;
  readonly #grown = new Set<StreamId>();
  #isSending = false;
  /** The heads at the latest look at them. */
  #seen: ReadonlyMap<StreamId, number> = new Map();
  #stops: readonly (() => void)[] = [];

  constructor(options: GrowthOptions) {
    this.#options = options;
  }

  get isListening(): boolean {
    return this.#client !== undefined;
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** Notifies the other nodes if there are any. Without a connection nothing is lost: HELLO follows when there is one. */
  announce(streams: Iterable<StreamId>): void {
    if (this.#hasOthers) this.#notify(streams);
  }

  announceWithheld(): void {
    this.announce([WITHHELD]);
  }

  follow(follower: Follower): void {
    this.#follower = follower;
    this.#stops = [repeat(() => this.#listen(), RECONNECT_PAUSE_MS), repeat(() => this.#poll(), POLL_INTERVAL_MS)];
  }

  async #listen(): Promise<void> {
    if (this.#client !== undefined) return;
    const { connect, channel } = this.#options;
    let client: Client | undefined;
    try {
      client = await connect();
      client.once('end', () => this.#lose(client));
      // Not the announced process, which a pooler makes up.
      const own = await backendOf(client);
      client.on('notification', ({ payload = '', processId }) => {
        if (processId !== own) this.#hear(payload);
      });
      await client.query(`LISTEN ${channel}`);
      this.#client = client;
      this.#notify([HELLO]);
      // Any stream may have grown before.
      this.#wake(ANY_STREAM);
    } catch {
      this.#lose(client);
    }
  }

  #lose(client: Client | undefined): void {
    if (client !== undefined && this.#client === client) {
      this.#client = undefined;
      this.#reconnects++;
    }
    // It may be silent: nothing waits for its end.
    client?.end().catch(() => {});
  }

  /** Streams that grow while a notification is being sent go into the next one. */
  #notify(streams: Iterable<StreamId>): void {
    for (const stream of streams) this.#grown.add(stream);
    if (!this.#isSending) detach(this.#send());
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#grown.size > 0) {
      const client = this.#client;
      const payload = payloadOf(this.#grown);
      this.#grown.clear();
      try {
        await client?.query(prepared(NOTIFY, [this.#options.channel, payload]));
      } catch {
        this.#lose(client);
      }
    }
    this.#isSending = false;
  }

  #hear(payload: string): void {
    // Growth before other nodes were known was never announced.
    if (!this.#hasOthers || payload === HELLO) this.#notify([ANY_STREAM]);
    this.#hasOthers = true;
    this.#wake(payload);
  }

  #wake(payload: string): void {
    const { followed, wake } = this.#follower;
    const isAny = payload === ANY_STREAM || payload === HELLO;
    const streams = isAny ? [...followed()] : payload.split(' ').map(toStream);
    if (isAny || streams.includes(WITHHELD)) this.#options.onWithheld();
    for (const stream of [...streams, ALL_CHAMBERS]) wake(stream);
  }

  /** Wakes the followers whose notifications were lost. */
  async #poll(): Promise<void> {
    if (!this.#hasOthers) this.#notify([HELLO]);
    const { followed, wake } = this.#follower;
    const streams = [...followed()];
    try {
      const heads = streams.length === 0 ? new Map() : await this.#options.heads(streams);
      for (const [stream, head] of heads) {
        // No head shows growth of all chambers, or of an agent's.
        const mayHaveGrown = stream === ALL_CHAMBERS || typeof stream === 'string' || this.#seen.get(stream) !== head;
        if (mayHaveGrown) wake(stream);
      }
      this.#seen = heads;
    } catch {
      // The next look compares with the same heads.
    }
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }
}

const NOTIFY = `SELECT pg_notify($1, $2), ${NOT_DURABLY}`;

function payloadOf(streams: ReadonlySet<StreamId>): string {
  if (streams.has(HELLO)) return HELLO;
  const listed = [...streams].join(' ');
  return streams.has(ANY_STREAM) || Buffer.byteLength(listed) > PAYLOAD_BYTES_MAX ? ANY_STREAM : listed;
}
