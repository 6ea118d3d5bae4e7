// The trigger that refuses every UPDATE of `events` asks a function that exists only on a connection with this guard. Elsewhere the trigger
// can't run, so an UPDATE fails there too. The function returns true for the lines of the withholding in progress, if the new line has the
// leaf of the old one; of a stub, another one may change `withheld` alone.
import type { Database } from 'better-sqlite3';
import { mayReplace } from '../../crypto/stub.ts';
import type { StreamId } from '../stream-id.ts';
import type { StubLine } from '../withholding.ts';

/** SQLite's error names it: "no such function: append_only_but_withheld". */
export const WITHHOLDS = 'append_only_but_withheld';

export function eventKey(stream: StreamId, eventId: number): string {
  return `${stream} ${eventId}`;
}

export class WithholdingGuard {
  #withheld: ReadonlySet<string> = new Set();

  constructor(db: Database) {
    db.function(WITHHOLDS, (stream, eventId, before, after) => Number(this.#allows(stream, eventId, before, after)));
  }

  #allows(...[stream, eventId, before, after]: readonly unknown[]): boolean {
    if (!this.#withheld.has(eventKey(stream as StreamId, eventId as number))) return false;
    return mayReplace(Buffer.from(String(before)), Buffer.from(String(after)));
  }

  /** Allows the replacement of these lines, and of no others. */
  allow(stubs: readonly StubLine[]): void {
    this.#withheld = new Set(stubs.map(({ stream, eventId }) => eventKey(stream, eventId)));
  }

  /** The same, by eventKey, while `work` runs. */
  during<Result>(withheld: readonly string[], work: () => Result): Result {
    this.#withheld = new Set(withheld);
    try {
      return work();
    } finally {
      this.#withheld = new Set();
    }
  }
}
