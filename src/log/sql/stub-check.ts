// Checks a stub against the line that it replaces.
import { originalProblem } from '../../crypto/stub.ts';
import { type ForumEvent, fromLine, toLine } from '../../vocabulary/events.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';
import type { StubLine } from '../withholding.ts';

interface StoredOriginal {
  readonly line: Buffer;
  readonly signature: Buffer | null;
}

/** Throws an Error unless the stub is one of the line. Returns the line's signature if its request leaves with it. */
export function requireStubOf({ stream, eventId, line }: StubLine, original: StoredOriginal): Buffer | null {
  const text = Buffer.from(line).toString();
  const event = fromLine(text);
  const problem =
    isStub(event) && toLine(event) === text ? originalProblem(original.line.toString(), event) : 'it is not a stub';
  if (problem !== undefined) throw new Error(`not the stub of event ${eventId} of ${stream}: ${problem}`);
  return event.request === null ? original.signature : null;
}

export function isStub(event: ForumEvent): event is ForumEvent & { readonly withheld: Withheld } {
  return event.withheld !== undefined;
}
