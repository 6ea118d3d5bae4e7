// Checks in memory whether a signature may be in the log: nearly every incoming signature is new, and an index look-up costs more than an
// insert. There are two Bloom filters; when the newer one is full, it replaces the older one. A log with one writer has no false negatives,
// because every signature of a dropped filter, or from before the start, has a second before `completeFrom`. One of several nodes knows only
// the signatures that it has seen, and its appends find the rest.

/** Two filters of this size take 512 KiB. */
const BITS = 2 ** 21;
/** Signatures per filter. With four bits each, one look-up in 400 is a false positive. */
const SIGNATURES_MAX = 2 ** 17;
const PROBES = 4;
/** A signatureKey begins with `created` in seconds, followed by the signature's bytes, which are effectively random. */
const SECOND_CHARS = 8;
/** A probe uses the low 21 bits of three bytes. */
const PROBE_CHARS = 3;

/** From 2106 on, every signature is looked up. */
const SECONDS_END = 2 ** 32;

interface Generation {
  readonly bits: Uint32Array;
  count: number;
  /** The latest second of a signature in this filter. */
  lastSecond: number;
}

export class SignatureFilter {
  /** Every signature in the log with this second or a later one is in one of the filters. */
  #completeFrom: number;
  #recent = emptyGeneration();
  #older = emptyGeneration();

  /** The caller adds every signature in the log whose second is `completeFrom` or later. */
  constructor(completeFrom: number) {
    this.#completeFrom = completeFrom;
  }

  add(signature: string): void {
    if (this.#recent.count === SIGNATURES_MAX) {
      this.#completeFrom = Math.max(this.#completeFrom, this.#older.lastSecond + 1);
      this.#older = this.#recent;
      this.#recent = emptyGeneration();
    }
    const { bits } = this.#recent;
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = bitOf(signature, probe);
      bits[bit >>> 5] = (bits[bit >>> 5] as number) | (1 << (bit & 31));
    }
    this.#recent.count++;
    this.#recent.lastSecond = Math.max(this.#recent.lastSecond, secondOf(signature));
  }

  /** Returns false only for a signature that is not in the log. */
  mayContain(signature: string): boolean {
    const second = secondOf(signature);
    if (second < this.#completeFrom || second >= SECONDS_END) return true;
    let isInRecent = true;
    let isInOlder = true;
    for (let probe = 0; probe < PROBES && (isInRecent || isInOlder); probe++) {
      const bit = bitOf(signature, probe);
      const mask = 1 << (bit & 31);
      isInRecent &&= ((this.#recent.bits[bit >>> 5] as number) & mask) !== 0;
      isInOlder &&= ((this.#older.bits[bit >>> 5] as number) & mask) !== 0;
    }
    return isInRecent || isInOlder;
  }
}

function emptyGeneration(): Generation {
  return { bits: new Uint32Array(BITS / 32), count: 0, lastSecond: -1 };
}

function bitOf(signature: string, probe: number): number {
  const at = SECOND_CHARS + PROBE_CHARS * probe;
  const bytes = signature.charCodeAt(at) | (signature.charCodeAt(at + 1) << 8) | (signature.charCodeAt(at + 2) << 16);
  return bytes % BITS;
}

function secondOf(signature: string): number {
  let second = 0;
  for (let at = 0; at < SECOND_CHARS; at++) second = second * 256 + signature.charCodeAt(at);
  return second;
}
