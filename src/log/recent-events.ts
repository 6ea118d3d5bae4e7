// The newest events of a log, in memory: where they are, by stream and by signature.
import type { LogEntry, StreamId } from './log.ts';

/** Where an event of a stream is, or a signature (its signatureKey). */
export type Place =
  | { readonly stream: StreamId; readonly eventId: number; readonly position: number }
  | { readonly signature: string; readonly position: number };

interface Run {
  readonly firstEventId: number;
  readonly positions: number[];
}

export class RecentEvents {
  readonly #streams = new Map<StreamId, Run>();
  readonly #signatures = new Map<string, number>();
  size = 0;
  /** 0 where there is none. */
  lastChamberId = 0;
  lastPosition = 0;

  add({ stream, eventId, signature }: Pick<LogEntry, 'stream' | 'eventId' | 'signature'>, position: number): void {
    const run = this.#streams.get(stream);
    if (run === undefined) this.#streams.set(stream, { firstEventId: eventId, positions: [position] });
    else run.positions.push(position);
    if (signature !== null) this.#signatures.set(signature, position);
    if (typeof stream === 'number') this.lastChamberId = Math.max(this.lastChamberId, stream);
    this.lastPosition = position;
    this.size++;
  }

  lastEventId(stream: StreamId): number | undefined {
    const run = this.#streams.get(stream);
    return run && run.firstEventId + run.positions.length - 1;
  }

  /** Of the events `after` + 1 and on, at most `limit`; empty where the first of these is older, or not there yet. */
  positions(stream: StreamId, after: number, limit: number): readonly number[] {
    const run = this.#streams.get(stream);
    const from = run === undefined ? -1 : after + 1 - run.firstEventId;
    return run === undefined || from < 0 ? [] : run.positions.slice(from, from + limit);
  }

  positionOfSignature(signature: string): number | undefined {
    return this.#signatures.get(signature);
  }

  /** Every event and every signature in the order of the tables that index them: neighbours are written to one page. */
  places(): readonly Place[] {
    const events = [...this.#streams].sort(([one], [other]) => (one < other ? -1 : 1));
    const signatures = [...this.#signatures].sort(([one], [other]) => (one < other ? -1 : 1));
    return [
      ...events.flatMap(([stream, { firstEventId, positions }]) =>
        positions.map((position, index) => ({ stream, eventId: firstEventId + index, position })),
      ),
      ...signatures.map(([signature, position]) => ({ signature, position })),
    ];
  }
}
