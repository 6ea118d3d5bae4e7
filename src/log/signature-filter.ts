// Whether a signature can be in the log at all, told from memory: nearly every one that comes is new, and looking each up
// in the index would cost more than writing it there. Two Bloom filters, of which the older is dropped when the newer is full.

/** Of one filter; two of them take 512 KiB. */
const BITS = 2 ** 21;
/** Signatures in one filter: with four bits each, one look in four hundred finds all its bits set by others. */
const SIGNATURES_MAX = 2 ** 17;
const PROBES = 4;
/** Characters of a signatureKey: the second of `created`, then the signature's bytes, which are as good as random. */
const SECOND_CHARS = 8;
/** A probe is the low 21 bits of three bytes. */
const PROBE_CHARS = 3;

/** The index knows seconds by their low 32 bits: from 2106 on it is asked about every signature. */
const SECONDS_END = 2 ** 32;

interface Generation {
  readonly bits: Uint32Array;
  count: number;
  /** The latest second of a signature in it. */
  lastSecond: number;
}

export class SignatureFilter {
  /** Signatures of this second and later are all in the filters. */
  #completeFrom: number;
  #recent = emptyGeneration();
  #older = emptyGeneration();

  /** No signature of the second `completeFrom` or later is in the log, but those that are added. */
  constructor(completeFrom: number) {
    this.#completeFrom = completeFrom;
  }

  add(signature: string): void {
    if (this.#recent.count === SIGNATURES_MAX) this.#turn();
    const { bits } = this.#recent;
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = bitOf(signature, probe);
      bits[bit >>> 5] = (bits[bit >>> 5] as number) | (1 << (bit & 31));
    }
    this.#recent.count++;
    this.#recent.lastSecond = Math.max(this.#recent.lastSecond, secondOf(signature));
  }

  /** False only for a signature that was never added and is of a second from which on all were. */
  mayHold(signature: string): boolean {
    const second = secondOf(signature);
    if (second < this.#completeFrom || second >= SECONDS_END) return true;
    return holds(this.#recent, signature) || holds(this.#older, signature);
  }

  #turn(): void {
    this.#completeFrom = Math.max(this.#completeFrom, this.#older.lastSecond + 1);
    this.#older = this.#recent;
    this.#recent = emptyGeneration();
  }
}

function emptyGeneration(): Generation {
  return { bits: new Uint32Array(BITS / 32), count: 0, lastSecond: -1 };
}

function holds({ bits }: Generation, signature: string): boolean {
  for (let probe = 0; probe < PROBES; probe++) {
    const bit = bitOf(signature, probe);
    if (((bits[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false;
  }
  return true;
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
