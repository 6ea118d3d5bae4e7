// The UPDATE trigger on `events` calls a function that exists only on connections with this guard. On other connections the trigger can't run,
// so every UPDATE fails. The function returns true for the lines of the withholding in progress, if the new line has the leaf of the old one.
// A stub may change only in its member `withheld`.
import type { Database } from 'better-sqlite3';
import { mayReplace } from '../../crypto/stub.ts';
import type { StreamId } from '../stream-id.ts';
import type { StubLine } from '../withholding.ts';

/** SQLite's error contains this name: "no such function: append_only_but_withheld". */
export const GUARD_FUNCTION = 'append_only_but_withheld';

export function eventKey(stream: StreamId, eventId: number): string {
  return `${stream} ${eventId}`;
}

export class WithholdingGuard {
  #withheld: ReadonlySet<string> = new Set();

  constructor(db: Database) {
    db.function(GUARD_FUNCTION, (stream, eventId, before, after) =>
      Number(this.#allows(stream, eventId, before, after)),
    );
  }

  #allows(...[stream, eventId, before, after]: readonly unknown[]): boolean {
    if (!this.#withheld.has(eventKey(stream as StreamId, eventId as number))) return false;
    return mayReplace(Buffer.from(String(before)), Buffer.from(String(after)));
  }

  /** Allows the replacement of these lines, and of no others. */
  allow(stubs: readonly StubLine[]): void {
    this.#withheld = new Set(stubs.map(({ stream, eventId }) => eventKey(stream, eventId)));
  }

  /** Allows the replacement of the lines with these eventKeys while `work` runs. */
  during<Result>(withheld: readonly string[], work: () => Result): Result {
    this.#withheld = new Set(withheld);
    try {
      return work();
    } finally {
      this.#withheld = new Set();
    }
  }
}
