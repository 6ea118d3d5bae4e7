// Lines kept by the caller: the originals of stubs, and other stubs of the same events.
import { leafHash } from '../../crypto/merkle.ts';
import type { ForumEvent } from '../../vocabulary/events.ts';
import { toHex } from '../../vocabulary/values.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';
import type { RawLine } from './input.ts';
import { readAny } from './record.ts';

type Stub = ForumEvent & { readonly withheld: Withheld };

const utf8 = new TextDecoder();

export class Originals {
  readonly #lines = new Map<string, string>();
  readonly #stubs = new Map<string, Stub[]>();

  /** Takes lines of chambers and accounts; resolves to the number of lines that are not events. */
  async takeAll(lines: AsyncIterable<RawLine>): Promise<number> {
    let unreadable = 0;
    for await (const line of lines) {
      const { event, problem } = readAny(line);
      if (event === undefined || problem !== undefined) unreadable++;
      else if (isStub(event)) this.#stubs.set(nameOf(event), [...this.stubsOf(event), event]);
      else this.#lines.set(toHex(leafHash(line.bytes)), utf8.decode(line.bytes));
    }
    return unreadable;
  }

  lineWith(leaf: string): string | undefined {
    return this.#lines.get(leaf);
  }

  stubsOf(event: ForumEvent): readonly Stub[] {
    return this.#stubs.get(nameOf(event)) ?? [];
  }
}

function isStub(event: ForumEvent): event is Stub {
  return event.withheld !== undefined;
}

function nameOf({ chamberId, did, eventId }: ForumEvent): string {
  return `${chamberId ?? did} ${eventId}`;
}
