// Verifies stubs of lines whose texts the service has withheld. A stub counts only for this log, and only if a key in the service's key
// directory signed it.
import type { KeyDirectory } from '../crypto/key-directory.ts';
import { contradicts, InvalidStub, lineLeaf, originalProblem, stubClaim } from '../crypto/stub.ts';
import { StubReader } from '../crypto/stub-reader.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { nameOfEvent, positionOfLine, type Stream } from '../tlog/leaf-index.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import { parseJson } from '../vocabulary/json.ts';
import { instantOf } from '../vocabulary/values.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import type { PublishedLog } from './published-log.ts';

export interface Stub {
  readonly stream: Stream;
  readonly eventId: number;
  readonly line: string;
  readonly leaf: Uint8Array;
  readonly event: StubEvent;
}

type StubEvent = ForumEvent & { readonly withheld: Withheld };

const utf8 = new TextDecoder();
const CLOSING_BRACE = 0x7d;
const WITHHELD = Buffer.from('"withheld":{');

/** Whether the line claims to be a stub: `withheld` is the last member. */
export function isStub(line: Uint8Array): boolean {
  return line.at(-2) === CLOSING_BRACE && Buffer.from(line.buffer, line.byteOffset, line.length).includes(WITHHELD);
}

export class StubVerifier {
  readonly #log: PublishedLog;
  readonly #reader: StubReader;
  #keys: KeyDirectory | undefined;

  constructor(log: PublishedLog, logId: string) {
    this.#log = log;
    this.#reader = new StubReader(({ log: named, keyid, at }) => {
      const key = this.#keys?.get(keyid);
      if (named !== logId) return 'is a stub of a different log';
      if (key === undefined) return 'is a stub by a key that is not in the key directory of the service';
      const isOver = key.exp !== undefined && instantOf(at) >= key.exp * 1_000;
      return isOver ? 'is a stub by an expired key' : undefined;
    });
  }

  /** Must be called before `leafOf` if any of the lines is a stub. */
  async prepare(lines: Iterable<Uint8Array>): Promise<void> {
    for (const line of lines) {
      if (!isStub(line)) continue;
      this.#keys = await this.#log.keyDirectory();
      return;
    }
  }

  /** Throws InvalidStub. */
  leafOf(line: Uint8Array): Uint8Array {
    return isStub(line) ? this.read(line).leaf : lineLeaf(line);
  }

  /** Throws InvalidStub. */
  read(line: Uint8Array): Stub {
    const text = utf8.decode(line);
    const position = positionOfLine(text, READ_LIMITS.jsonValuesMax);
    if (position === undefined) throw new InvalidStub('is not an event');
    const record = Object(parseJson(text, READ_LIMITS.jsonValuesMax)) as Readonly<Record<string, unknown>>;
    const { payload, request, withheld } = record;
    if (!isObject(payload) || !(request === null || isObject(request)) || !isObject(withheld))
      throw new InvalidStub('is not a stub');
    // The reader verifies the rest of the form.
    const event = record as unknown as StubEvent;
    const { stream, eventId } = position;
    return { stream, eventId, line: text, leaf: this.#reader.leafOf(line, event), event };
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Returns the leaf of a line in the folder, whose signature was verified earlier. Returns an empty leaf if the line has changed since. */
export function storedLineLeaf(line: Uint8Array): Uint8Array {
  if (!isStub(line)) return lineLeaf(line);
  try {
    return stubClaim(JSON.parse(utf8.decode(line)))?.leaf ?? NO_LEAF;
  } catch {
    return NO_LEAF;
  }
}

const NO_LEAF = new Uint8Array();

/** Returns why the stub contradicts a verified line of the same event; undefined if the stub may replace the line. */
export function contradiction(held: string, stub: Stub): string | undefined {
  const name = nameOfEvent(stub);
  if (!isStub(Buffer.from(held))) {
    const problem = originalProblem(held, stub.event);
    return problem && `the stub of ${name} does not match the line that it replaces: ${problem}`;
  }
  if (!contradicts(JSON.parse(held), stub.event)) return undefined;
  return `the service has two stubs of ${name} that differ in more than time, reason and key`;
}
