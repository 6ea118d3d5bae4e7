// How many streams each network holds open: a stream costs memory for as long as it lasts, so it counts until it ends.
import type { IncomingMessage } from 'node:http';
import { ForumError } from '../vocabulary/errors.ts';

export class StreamQuota {
  readonly #perNetworkMax: number;
  readonly #networkOf: (incoming: IncomingMessage) => string;
  readonly #open = new Map<string, number>();
  #total = 0;

  constructor(perNetworkMax: number, networkOf: (incoming: IncomingMessage) => string) {
    this.#perNetworkMax = perNetworkMax;
    this.#networkOf = networkOf;
  }

  get total(): number {
    return this.#total;
  }

  /** Counts a stream until its socket closes; throws FORUM_ERR_RATE. */
  hold(incoming: IncomingMessage): void {
    const network = this.#networkOf(incoming);
    const open = this.#open.get(network) ?? 0;
    if (open >= this.#perNetworkMax) {
      const detail = `too many streams from your address: at most ${this.#perNetworkMax} may be open`;
      throw new ForumError('FORUM_ERR_RATE', detail, { retryAfterSeconds: 5 });
    }
    if (incoming.socket.closed) return;
    this.#add(network, 1);
    incoming.socket.once('close', () => this.#add(network, -1));
  }

  #add(network: string, change: 1 | -1): void {
    this.#total += change;
    const open = (this.#open.get(network) ?? 0) + change;
    if (open > 0) this.#open.set(network, open);
    else this.#open.delete(network);
  }
}
