// Remembers the signatures, hashes and addresses of a log, each in about 27 bytes, while they could be used again.
import { keccak256 } from '../../crypto/keccak.ts';
import type { Millis } from '../../vocabulary/values.ts';

const SEED_BYTES = 16;
const VALUE_BYTES_MAX = 64;
const HASH_WORDS = 4;

/** Forgets values older than `horizon` in the log's time, whose second use would be too old. Without a horizon, remembers all. */
export class UsedValues {
  readonly #horizon: Millis;
  // Begins with random bytes, so that no writer of a log can create signatures whose hashes collide.
  readonly #input = crypto.getRandomValues(new Uint8Array(SEED_BYTES + VALUE_BYTES_MAX));
  readonly #words = new Uint32Array(HASH_WORDS);
  readonly #wordBytes = new Uint8Array(this.#words.buffer);
  /** From the oldest to the newest, which alone grows, so that a full table is never copied. */
  #tables: readonly HashTable[] = [new HashTable(PLACES_FIRST)];

  constructor(horizon: Millis = Number.POSITIVE_INFINITY) {
    this.#horizon = horizon;
  }

  /** Remembers a new value. Returns the event, or other number from 1, that had the value before. */
  add(value: Uint8Array, eventId: number, at: Millis = 0): number | undefined {
    const [oldest] = this.#tables;
    if (this.#tables.length > 1 && oldest !== undefined && at - oldest.lastAt > this.#horizon)
      this.#tables = this.#tables.slice(1);
    const first = this.first(value);
    if (first !== undefined) return first;
    if (this.#tables.at(-1)?.isFull) this.#tables = [...this.#tables, new HashTable(PLACES_MAX)];
    this.#tables.at(-1)?.add(this.#words, eventId, at);
    return undefined;
  }

  first(value: Uint8Array): number | undefined {
    this.#input.set(value, SEED_BYTES);
    const hash = keccak256(this.#input.subarray(0, SEED_BYTES + value.length));
    this.#wordBytes.set(hash.subarray(0, this.#wordBytes.length));
    for (const table of this.#tables) {
      const first = table.eventOf(this.#words);
      if (first !== undefined) return first;
    }
    return undefined;
  }
}

const PLACES_FIRST = 4;
/** 2 MB. */
const PLACES_MAX = 98_304;
const TAKEN_MAX = 0.75;
const GROWTH = 2;
/** Stands for all higher ids, which only occur in logs with gaps. */
const EVENT_ID_MAX = 0xffff_ffff;

/** Event ids by 16 bytes of a hash, in four words. */
class HashTable {
  #hashes: Uint32Array;
  /** 0 marks a free place. */
  #eventIds: Uint32Array;
  #size = 0;
  lastAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(places: number) {
    this.#hashes = new Uint32Array(HASH_WORDS * places);
    this.#eventIds = new Uint32Array(places);
  }

  get isFull(): boolean {
    return this.#size >= TAKEN_MAX * PLACES_MAX;
  }

  eventOf(words: Uint32Array): number | undefined {
    return this.#eventIds[this.#placeOf(words)] || undefined;
  }

  /** The hash must be new. */
  add(words: Uint32Array, eventId: number, at: Millis): void {
    if (this.#size >= TAKEN_MAX * this.#eventIds.length) this.#grow();
    this.#put(words, Math.min(eventId, EVENT_ID_MAX));
    this.#size++;
    this.lastAt = Math.max(this.lastAt, at);
  }

  #put(words: Uint32Array, eventId: number): void {
    const place = this.#placeOf(words);
    this.#hashes.set(words, place * HASH_WORDS);
    this.#eventIds[place] = eventId;
  }

  /** The index of the hash, or the free one for it. */
  #placeOf(words: Uint32Array): number {
    const places = this.#eventIds.length;
    let place = (words[0] as number) % places;
    while (this.#eventIds[place] !== 0 && !this.#isAt(place * HASH_WORDS, words)) place = (place + 1) % places;
    return place;
  }

  #isAt(from: number, words: Uint32Array): boolean {
    for (let index = 0; index < HASH_WORDS; index++) if (words[index] !== this.#hashes[from + index]) return false;
    return true;
  }

  #grow(): void {
    const [hashes, eventIds] = [this.#hashes, this.#eventIds];
    const places = Math.min(eventIds.length * GROWTH, PLACES_MAX);
    this.#hashes = new Uint32Array(HASH_WORDS * places);
    this.#eventIds = new Uint32Array(places);
    for (const [place, eventId] of eventIds.entries()) {
      if (eventId !== 0) this.#put(hashes.subarray(place * HASH_WORDS, (place + 1) * HASH_WORDS), eventId);
    }
  }
}
