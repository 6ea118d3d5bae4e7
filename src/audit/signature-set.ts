// The signatures that a log has used, in about 40 bytes each, and no longer than they could be used again.
import { keccak256 } from '../crypto/keccak.ts';
import type { Millis } from '../vocabulary/values.ts';

const SEED_BYTES = 16;
const SIGNATURE_BYTES = 64;

/** Forgets a signature that was met more than `horizon` before, in the log's time: its second use is too old by then. */
export class SignatureSet {
  readonly #horizon: Millis;
  // Begins with what no writer of a log can know, so that nobody can make signatures whose hashes collide.
  readonly #input = crypto.getRandomValues(new Uint8Array(SEED_BYTES + SIGNATURE_BYTES));
  #older: HashTable | undefined;
  #newer = new HashTable();
  #newerFrom: Millis | undefined;

  constructor(horizon: Millis = Number.POSITIVE_INFINITY) {
    this.#horizon = horizon;
  }

  /** Returns the event that has the signature already; undefined for a new one, which is kept. */
  add(signature: Uint8Array, eventId: number, at: Millis): number | undefined {
    this.#newerFrom ??= at;
    if (at - this.#newerFrom > this.#horizon) {
      this.#older = this.#newer;
      this.#newer = new HashTable();
      this.#newerFrom = at;
    }
    this.#input.set(signature, SEED_BYTES);
    const words = new Uint32Array(keccak256(this.#input).slice(0, HASH_WORDS * Uint32Array.BYTES_PER_ELEMENT).buffer);
    return this.#older?.eventOf(words) ?? this.#newer.add(words, eventId);
  }
}

const HASH_WORDS = 4;
const PLACES_FIRST = 4;
const TAKEN_MAX = 0.75;
const GROWTH = 1.5;

/** By 16 bytes of a hash, as four words, an event id. */
class HashTable {
  #hashes = new Uint32Array(HASH_WORDS * PLACES_FIRST);
  /** 0 where a place is free. */
  #eventIds = new Float64Array(PLACES_FIRST);
  #size = 0;

  eventOf(words: Uint32Array): number | undefined {
    return this.#eventIds[this.#placeOf(words)] || undefined;
  }

  add(words: Uint32Array, eventId: number): number | undefined {
    const place = this.#placeOf(words);
    const first = this.#eventIds[place];
    if (first !== 0) return first;
    this.#hashes.set(words, place * HASH_WORDS);
    this.#eventIds[place] = eventId;
    this.#size++;
    if (this.#size > TAKEN_MAX * this.#eventIds.length) this.#grow();
    return undefined;
  }

  /** Where the hash is, otherwise where it belongs. */
  #placeOf(words: Uint32Array): number {
    const places = this.#eventIds.length;
    let place = (words[0] as number) % places;
    while (this.#eventIds[place] !== 0 && !this.#isAt(place, words)) place = (place + 1) % places;
    return place;
  }

  #isAt(place: number, words: Uint32Array): boolean {
    return words.every((word, index) => word === this.#hashes[place * HASH_WORDS + index]);
  }

  #grow(): void {
    const [hashes, eventIds] = [this.#hashes, this.#eventIds];
    const places = Math.ceil(eventIds.length * GROWTH);
    this.#hashes = new Uint32Array(HASH_WORDS * places);
    this.#eventIds = new Float64Array(places);
    this.#size = 0;
    for (const [place, eventId] of eventIds.entries()) {
      if (eventId === 0) continue;
      this.add(hashes.subarray(place * HASH_WORDS, (place + 1) * HASH_WORDS), eventId);
    }
  }
}
