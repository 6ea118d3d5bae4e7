// Folds streams that are read from a store, each in one piece and from its first event on. Later events build on earlier ones, so only
// the first fault of a stream is reported, and what follows it is left out.
import { type StoredEvent, streamOf } from './stored-stream.ts';
import type { StreamId } from './stream-id.ts';

/** The state after an event; throws an Error that names the fault. */
type Step<Row, State> = (before: State | null, row: Row) => State;

export interface FoldedEvent<State> {
  readonly stream: StreamId;
  readonly before: State | null;
  readonly after: State;
}

export class StreamFold<Row extends Pick<StoredEvent, 'chamber_id' | 'account'>, State> {
  events = 0;
  chambers = 0;
  accounts = 0;
  readonly badStreams = new Set<StreamId>();
  readonly #step: Step<Row, State>;
  readonly #onFault: (row: Row, error: unknown) => void;
  #stream: StreamId | undefined;
  #state: State | null = null;

  constructor(step: Step<Row, State>, onFault: (row: Row, error: unknown) => void) {
    this.#step = step;
    this.#onFault = onFault;
  }

  /** Undefined from the first fault of a stream on. */
  add(row: Row): FoldedEvent<State> | undefined {
    const stream = streamOf(row);
    this.events++;
    if (stream !== this.#stream) {
      this.#stream = stream;
      this.#state = null;
      this[typeof stream === 'number' ? 'chambers' : 'accounts']++;
    }
    if (this.badStreams.has(stream)) return undefined;
    try {
      const before = this.#state;
      const after = this.#step(before, row);
      this.#state = after;
      return { stream, before, after };
    } catch (error) {
      this.fail(row, error);
      return undefined;
    }
  }

  fail(row: Row, error: unknown): void {
    if (this.badStreams.has(streamOf(row))) return;
    this.badStreams.add(streamOf(row));
    this.#onFault(row, error);
  }
}
