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
    this.#keep(stream, await this.#streams.load(stream));
  }

  /** Keeps the stream if it is in memory, and says so: most are, and nothing is awaited for them. */
  hold(stream: StreamId): boolean {
    const state = this.#streams.get(stream);
    this.#keep(stream, state);
    return state !== undefined;
  }

  /** A stream without events stays absent. */
  #keep(stream: StreamId, state: Chamber | Account | undefined): void {
    if (state === undefined) return;
    if (typeof stream === 'number') this.#chambers.set(stream, state as Chamber);
    else this.#accounts.set(stream, state as Account);
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
