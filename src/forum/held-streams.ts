// The streams that a batch needs, held while it is decided: the cache may forget one of them while another is loaded.
import type { StreamId } from '../log/log.ts';
import type { Account, Chamber, Streams } from './streams.ts';

/** What a draft needs of the streams. */
export type StreamStates = Pick<Streams, 'chamber' | 'account' | 'setChamber' | 'setAccount' | 'forget'>;

export class HeldStreams implements StreamStates {
  readonly #streams: Streams;
  readonly #chambers = new Map<number, Chamber>();
  readonly #accounts = new Map<string, Account>();

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  /** Loads the stream and keeps it; only the batch itself can change it meanwhile. */
  async load(stream: StreamId): Promise<void> {
    await this.#streams.load(stream);
    this.#keep(stream);
  }

  /** Keeps the stream if it is in memory, and says so: most are, and nothing is awaited for them. */
  hold(stream: StreamId): boolean {
    const isLoaded = this.#streams.isLoaded(stream);
    if (isLoaded) this.#keep(stream);
    return isLoaded;
  }

  #keep(stream: StreamId): void {
    if (typeof stream === 'number') keep(this.#chambers, stream, this.#streams.chamber(stream));
    else keep(this.#accounts, stream, this.#streams.account(stream));
  }

  chamber(chamberId: number): Chamber | undefined {
    return this.#chambers.get(chamberId);
  }

  account(did: string): Account | undefined {
    return this.#accounts.get(did);
  }

  setChamber(chamber: Chamber): void {
    this.#streams.setChamber(chamber);
  }

  setAccount(account: Account): void {
    this.#streams.setAccount(account);
  }

  forget(stream: StreamId): void {
    this.#streams.forget(stream);
  }
}

/** A stream without events stays absent. */
function keep<Key, State>(states: Map<Key, State>, key: Key, state: State | undefined): void {
  if (state !== undefined) states.set(key, state);
}
