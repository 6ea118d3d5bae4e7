// Parses a hostile JSON array item by item, so that the text of a long list is never in memory as a whole.
import { withCommas } from '../vocabulary/values.ts';
import { LimitError, parseBoundedJson, type ReadLimits } from './limits.ts';

export type ListLimits = Pick<ReadLimits, 'listBytesMax' | 'listCharsMax' | 'itemBytesMax' | 'jsonValuesMax'>;

const SPACES: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING: readonly number[] = [0x5b, 0x7b];
const CLOSING: readonly number[] = [0x5d, 0x7d];
const [OPEN_BRACKET] = OPENING;
const [CLOSE_BRACKET] = CLOSING;

/** Returns undefined if the text is not a JSON array. Throws a LimitError if the text exceeds a limit. */
export async function readList(
  chunks: AsyncIterable<Uint8Array>,
  limits: ListLimits,
): Promise<readonly unknown[] | undefined> {
  const parser = new ListParser(limits);
  for await (const chunk of chunks) if (!parser.push(chunk)) return undefined;
  return parser.isEnded ? parser.items : undefined;
}

class ListParser {
  readonly items: unknown[] = [];
  isEnded = false;
  readonly #limits: ListLimits;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #item: Uint8Array;
  #itemBytes = 0;
  #bytes = 0;
  #chars = 0;
  #values = 0;
  /** 1 between items. */
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(limits: ListLimits) {
    this.#limits = limits;
    this.#item = new Uint8Array(limits.itemBytesMax);
  }

  /** Returns false once the text is certainly not a JSON array. */
  push(chunk: Uint8Array): boolean {
    const { listBytesMax } = this.#limits;
    this.#bytes += chunk.length;
    if (this.#bytes > listBytesMax)
      throw new LimitError('listBytesMax', `it is a list of more than ${withCommas(listBytesMax)} bytes`);
    return chunk.every((byte) => (this.#isInString ? this.#takeInString(byte) : this.#takeOutsideString(byte)));
  }

  #takeInString(byte: number): boolean {
    this.#isInString = this.#isEscaped || byte !== QUOTE;
    this.#isEscaped = !this.#isEscaped && byte === BACKSLASH;
    return this.#keep(byte);
  }

  #takeOutsideString(byte: number): boolean {
    if (this.#depth === 0) {
      if (SPACES.includes(byte)) return true;
      this.#depth = 1;
      return byte === OPEN_BRACKET && !this.isEnded;
    }
    if (byte === COMMA || OPENING.includes(byte)) this.#countValue();
    if (this.#depth === 1 && byte === COMMA) return this.#endItem();
    if (this.#depth === 1 && byte === CLOSE_BRACKET) return this.#end();
    if (OPENING.includes(byte)) this.#depth++;
    if (CLOSING.includes(byte)) this.#depth--;
    this.#isInString = byte === QUOTE;
    return this.#depth > 0 && this.#keep(byte);
  }

  #countValue(): void {
    const { jsonValuesMax } = this.#limits;
    if (++this.#values > jsonValuesMax)
      throw new LimitError('jsonValuesMax', `it is a list of more than ${withCommas(jsonValuesMax)} values`);
  }

  #keep(byte: number): true {
    const { itemBytesMax } = this.#limits;
    if (this.#itemBytes === itemBytesMax)
      throw new LimitError('itemBytesMax', `it contains an item of more than ${withCommas(itemBytesMax)} bytes`);
    this.#item[this.#itemBytes++] = byte;
    return true;
  }

  #end(): boolean {
    this.#depth = 0;
    this.isEnded = true;
    const isEmpty =
      this.items.length === 0 && this.#item.subarray(0, this.#itemBytes).every((byte) => SPACES.includes(byte));
    return isEmpty || this.#endItem();
  }

  #endItem(): boolean {
    const text = this.#decoder.decode(this.#item.subarray(0, this.#itemBytes));
    this.#itemBytes = 0;
    const item = parseBoundedJson(text, this.#limits);
    this.#chars += charsOf(item);
    const { listCharsMax } = this.#limits;
    if (this.#chars > listCharsMax)
      throw new LimitError('listCharsMax', `its texts have more than ${withCommas(listCharsMax)} characters`);
    this.items.push(item);
    return item !== undefined;
  }
}

/** Returns the number of characters in all strings of a value, whose depth parseBoundedJson has limited. */
function charsOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce((chars, [name, member]) => chars + name.length + charsOf(member), 0);
}
