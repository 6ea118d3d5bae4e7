// Listens to the notifications of the nodes, again on another connection when one is lost.
import type { Client } from 'pg';

const RECONNECT_PAUSE_MS = 1_000;

interface ListenerOptions {
  readonly connect: () => Promise<Client>;
  readonly channel: string;
  /** Called with the message and the backend that sent it. */
  readonly onMessage: (payload: string, processId: number) => void;
  /** Called each time that it has begun to listen: what was sent before is lost. */
  readonly onListening: () => void;
}

export class Listener {
  readonly #options: ListenerOptions;
  #timer: NodeJS.Timeout | undefined;
  #isListening = false;
  #reconnects = 0;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  async start(): Promise<void> {
    const { connect, channel, onMessage, onListening } = this.#options;
    let client: Client | undefined;
    try {
      client = await connect();
      client.on('notification', ({ payload = '', processId }) => onMessage(payload, processId));
      await client.query(`LISTEN ${channel}`);
      client.once('end', () => {
        this.#isListening = false;
        this.#reconnects++;
        this.#startAgain();
      });
      this.#isListening = true;
      onListening();
    } catch {
      void client?.end().catch(() => {});
      this.#startAgain();
    }
  }

  #startAgain(): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.start(), RECONNECT_PAUSE_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
