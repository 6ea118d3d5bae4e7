// How many streams each network holds open: a stream costs memory for as long as it lasts, so it counts until it ends.
import type { IncomingMessage } from 'node:http';
import { ForumError } from '../vocabulary/errors.ts';

const RETRY_AFTER_SECONDS = '5';

export class StreamQuota {
  readonly #streamsPerAddressMax: number;
  readonly #networkOf: (incoming: IncomingMessage) => string;
  readonly #open = new Map<string, number>();
  #total = 0;

  /** `networkOf` returns the network that a request counts against. */
  constructor(streamsPerAddressMax: number, networkOf: (incoming: IncomingMessage) => string) {
    this.#streamsPerAddressMax = streamsPerAddressMax;
    this.#networkOf = networkOf;
  }

  get total(): number {
    return this.#total;
  }

  /** Counts a stream until its socket closes; throws FORUM_ERR_RATE. */
  hold(incoming: IncomingMessage): void {
    const { socket } = incoming;
    const network = this.#networkOf(incoming);
    const open = this.#open.get(network) ?? 0;
    if (open >= this.#streamsPerAddressMax) {
      const detail = `too many streams from your address: at most ${this.#streamsPerAddressMax} may be open`;
      throw new ForumError('FORUM_ERR_RATE', detail, { headers: { 'Retry-After': RETRY_AFTER_SECONDS } });
    }
    if (socket.closed) return;
    this.#open.set(network, open + 1);
    this.#total++;
    socket.once('close', () => this.#release(network));
  }

  #release(network: string): void {
    this.#total--;
    const open = (this.#open.get(network) ?? 0) - 1;
    if (open > 0) this.#open.set(network, open);
    else this.#open.delete(network);
  }
}
