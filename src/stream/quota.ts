// How many streams each network holds open: a stream costs memory for as long as it lasts, so it is counted until it ends.
import { ForumError } from '../vocabulary/errors.ts';
import { networkOf } from '../vocabulary/network.ts';

const RETRY_AFTER_SECONDS = '5';

export class StreamQuota {
  readonly #streamsPerAddressMax: number;
  readonly #open = new Map<string, number>();
  #total = 0;

  constructor(streamsPerAddressMax: number) {
    this.#streamsPerAddressMax = streamsPerAddressMax;
  }

  get total(): number {
    return this.#total;
  }

  /** Counts a stream of that socket address and returns what ends it, at the first call; throws FORUM_ERR_RATE. */
  open(address: string): () => void {
    const network = networkOf(address);
    const open = this.#open.get(network) ?? 0;
    if (open >= this.#streamsPerAddressMax) throw tooManyStreams(this.#streamsPerAddressMax);
    this.#open.set(network, open + 1);
    this.#total++;
    let isOpen = true;
    return () => {
      if (isOpen) this.#close(network);
      isOpen = false;
    };
  }

  #close(network: string): void {
    this.#total--;
    const open = (this.#open.get(network) ?? 0) - 1;
    if (open > 0) this.#open.set(network, open);
    else this.#open.delete(network);
  }
}

function tooManyStreams(streamsMax: number): ForumError {
  return new ForumError('FORUM_ERR_RATE', `too many streams of your address: at most ${streamsMax} are open at once`, {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
  });
}
