// Notifies the other nodes of the streams that have grown, on a connection of its own and without waiting for the disk.
import type { Client } from 'pg';
import { detach } from '../../process/detach.ts';
import type { StreamId } from '../stream-id.ts';
import { prepared } from './driver.ts';
import { backendOf, NOT_DURABLY } from './session.ts';

/** PostgreSQL's limit is 8,000; a longer list becomes a call to look at every followed stream. */
const PAYLOAD_BYTES_MAX = 7_900;
export const ANY_STREAM = '';
/** A node sends it that has begun to listen, or has heard of no other. The others respond, and any stream may have grown. */
export const HELLO = '?';

interface NotifierOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
}

export class Notifier {
  readonly #options: NotifierOptions;
  readonly #grown = new Set<StreamId>();
  #client: Client | undefined;
  #processId: number | undefined;
  #isSending = false;
  #isClosed = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** The backend that notifies, by which the node knows its own notifications. A pooler would announce another one to the client. */
  get processId(): number | undefined {
    return this.#processId;
  }

  /** Streams that grow while a notification is under way go into the next one. One that fails is lost. */
  notify(streams: Iterable<StreamId>): void {
    for (const stream of streams) this.#grown.add(stream);
    if (!this.#isSending) detach(this.#send());
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    try {
      while (this.#grown.size > 0 && !this.#isClosed) {
        const payload = payloadOf(this.#grown);
        this.#grown.clear();
        this.#client ??= await this.#connect();
        const values = [this.#options.channel, payload];
        await this.#client.query(prepared(NOTIFY, values));
      }
    } catch {
      this.#drop(this.#client);
    }
    this.#isSending = false;
  }

  async #connect(): Promise<Client> {
    const client = await this.#options.connect();
    client.once('end', () => this.#drop(client));
    try {
      this.#processId = await backendOf(client);
      return client;
    } catch (error) {
      this.#drop(client);
      throw error;
    }
  }

  #drop(client: Client | undefined): void {
    if (this.#client === client) this.#client = undefined;
    // It may be silent: its end is not waited for.
    client?.end().catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
  }
}

const NOTIFY = `SELECT pg_notify($1, $2), ${NOT_DURABLY}`;

function payloadOf(streams: ReadonlySet<StreamId>): string {
  if (streams.has(HELLO)) return HELLO;
  const listed = [...streams].join(' ');
  return streams.has(ANY_STREAM) || Buffer.byteLength(listed) > PAYLOAD_BYTES_MAX ? ANY_STREAM : listed;
}
