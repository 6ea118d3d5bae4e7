// Wake-ups between nodes, by LISTEN and NOTIFY. They carry no data and may be lost, so no append waits for them: a NOTIFY inside its
// transaction would take a lock on the whole server. Each node listens and notifies on one connection. Polling the heads of the followed
// streams makes up for lost wake-ups.
import type { Client } from 'pg';
import { detach, repeat } from '../../process/detach.ts';
import { ALL_CHAMBERS } from '../log.ts';
import { toStream } from '../sql/sql.ts';
import type { Follower } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import { ASYNCHRONOUS_COMMIT, backendOf, prepared } from './session.ts';

const RECONNECT_PAUSE_MS = 1_000;
const POLL_INTERVAL_MS = 5_000;
/** PostgreSQL's limit is 8,000; ANY_STREAM replaces a longer list. */
const PAYLOAD_BYTES_MAX = 7_900;
const ANY_STREAM = '';
/** Sent by a node that begins to listen or knows of no other node. The other nodes respond and wake all followers. */
const HELLO = '?';
/** Sent after a line was withheld. */
const WITHHELD = '!';

interface ChannelOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
  /** Called when another node may have withheld a line. */
  readonly onWithheld: () => void;
}

export class NotificationChannel {
  readonly #options: ChannelOptions;
  #follower: Follower = { followed: () => [], wake: () => {} };
  /** Undefined while disconnected. */
  #client: Client | undefined;
  #reconnects = 0;
  /** A node that knows of no other node sends only HELLO. */
  #hasOthers = false;
  readonly #grown = new Set<StreamId>();
  #isSending = false;
  /** The heads at the latest poll. */
  #seen: ReadonlyMap<StreamId, number> = new Map();
  #stops: readonly (() => void)[] = [];

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  get isListening(): boolean {
    return this.#client !== undefined;
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** Notifies the other nodes, if there are any. While disconnected, notifications are dropped; HELLO follows the reconnection. */
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
      client.once('end', () => this.#disconnect(client));
      // A pooler makes up the process id that it announces to the client.
      const own = await backendOf(client);
      client.on('notification', ({ payload = '', processId }) => {
        if (processId !== own) this.#receive(payload);
      });
      await client.query(`LISTEN ${channel}`);
      this.#client = client;
      this.#notify([HELLO]);
      // Any stream may have grown while this node was not listening.
      this.#wake(ANY_STREAM);
    } catch {
      this.#disconnect(client);
    }
  }

  #disconnect(client: Client | undefined): void {
    if (client !== undefined && this.#client === client) {
      this.#client = undefined;
      this.#reconnects++;
    }
    // The server may not respond, so nothing waits for the connection to end.
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
        this.#disconnect(client);
      }
    }
    this.#isSending = false;
  }

  #receive(payload: string): void {
    // This node announced no growth while it knew of no other node.
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
        // No head shows growth of all chambers, or of an agent's chambers.
        const mayHaveGrown = stream === ALL_CHAMBERS || typeof stream === 'string' || this.#seen.get(stream) !== head;
        if (mayHaveGrown) wake(stream);
      }
      this.#seen = heads;
    } catch {
      // The next poll compares with the same heads.
    }
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }
}

const NOTIFY = `SELECT pg_notify($1, $2), ${ASYNCHRONOUS_COMMIT}`;

function payloadOf(streams: ReadonlySet<StreamId>): string {
  if (streams.has(HELLO)) return HELLO;
  const listed = [...streams].join(' ');
  return streams.has(ANY_STREAM) || Buffer.byteLength(listed) > PAYLOAD_BYTES_MAX ? ANY_STREAM : listed;
}
