// A stream according to its lines: each line is parsed, chained to the previous line, and folded. A line holds the hash of the previous
// line and so identifies its whole past; therefore a line that occurs in many histories is folded only once.
import { type AccountState, evolveAccount } from '../../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { leafHash } from '../../../src/crypto/merkle.ts';
import type { AccountEvent, ChamberEvent, ForumEvent } from '../../../src/vocabulary/events.ts';
import { type Hex, NO_PREVIOUS, toHex } from '../../../src/vocabulary/values.ts';
import type { Stream } from './history.ts';

export interface Folded {
  readonly event: ForumEvent;
  readonly line: string;
  readonly leaf: Hex;
  readonly chamber: ChamberState | null;
  readonly account: AccountState | null;
}

export class StreamFolds {
  readonly #known = new Map<string, Folded>();

  /** Returns the stream up to its first problem, which is passed to `report`. */
  fold(stream: Stream, lines: readonly string[], report: (problem: string) => void): readonly Folded[] {
    const folded: Folded[] = [];
    for (const [index, line] of lines.entries()) {
      const before = folded.at(-1);
      try {
        const next = this.#known.get(line) ?? foldLine(line, before);
        requireNext(next.event, { stream, eventId: index + 1, before });
        this.#known.set(line, next);
        folded.push(next);
      } catch (error) {
        report(`event ${index + 1} of ${stream}: ${(error as Error).message}`);
        return folded;
      }
    }
    return folded;
  }
}

function foldLine(line: string, before: Folded | undefined): Folded {
  const event = JSON.parse(line) as ForumEvent;
  const leaf = toHex(leafHash(Buffer.from(line)));
  if (event.chamberId === null) {
    const account = evolveAccount(before?.account ?? null, event as AccountEvent);
    return { event, line, leaf, chamber: null, account };
  }
  const chamber = evolveChamber(before?.chamber ?? null, event as ChamberEvent);
  return { event, line, leaf, chamber, account: null };
}

interface Expected {
  readonly stream: Stream;
  readonly eventId: number;
  readonly before: Folded | undefined;
}

function requireNext(event: ForumEvent, { stream, eventId, before }: Expected): void {
  if (event.eventId !== eventId) throw new Error(`its eventId is ${event.eventId}`);
  if ((event.chamberId ?? event.did) !== stream) throw new Error(`it belongs to ${event.chamberId ?? event.did}`);
  if (event.prev !== (before?.leaf ?? NO_PREVIOUS)) throw new Error('prev is not the hash of the previous line');
  if (before !== undefined && event.ts < before.event.ts)
    throw new Error(`ts goes back from ${before.event.ts} to ${event.ts}`);
}
