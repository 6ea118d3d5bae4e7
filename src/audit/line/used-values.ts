// Remembers the signatures, hashes and addresses of a log as long as they could be reused. Takes about 27 bytes per value.
import { keccak256 } from '../../crypto/keccak.ts';
import type { Millis } from '../../vocabulary/values.ts';

const SEED_BYTES = 16;
const VALUE_BYTES_MAX = 64;
const HASH_WORDS = 4;

/** Forgets values older than `horizon` in the log's time, because a reuse would be rejected as too old. By default, forgets nothing. */
export class UsedValues {
  readonly #horizon: Millis;
  // Starts with random bytes, so that the writer of a log can't construct values whose hashes collide.
  readonly #input = crypto.getRandomValues(new Uint8Array(SEED_BYTES + VALUE_BYTES_MAX));
  readonly #words = new Uint32Array(HASH_WORDS);
  readonly #wordBytes = new Uint8Array(this.#words.buffer);
  /** Oldest first. Only the newest grows, so a full table is never copied. */
  #tables: readonly HashTable[] = [new HashTable(SLOTS_INITIAL)];

  constructor(horizon: Millis = Number.POSITIVE_INFINITY) {
    this.#horizon = horizon;
  }

  /** Records a new value with `eventId`, which may be any positive number. Returns the recorded number of a known value. */
  add(value: Uint8Array, eventId: number, at: Millis = 0): number | undefined {
    const [oldest] = this.#tables;
    if (this.#tables.length > 1 && oldest !== undefined && at - oldest.lastAt > this.#horizon)
      this.#tables = this.#tables.slice(1);
    const first = this.first(value);
    if (first !== undefined) return first;
    if (this.#tables.at(-1)?.isFull) this.#tables = [...this.#tables, new HashTable(SLOTS_MAX)];
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

const SLOTS_INITIAL = 4;
/** A full table takes 2 MB. */
const SLOTS_MAX = 98_304;
const LOAD_FACTOR_MAX = 0.75;
const GROWTH_FACTOR = 2;
/** Represents all higher ids, which occur only in logs with gaps. */
const EVENT_ID_MAX = 0xffff_ffff;

/** An open-addressing table of event ids, keyed by 16 bytes of a hash as four words. */
class HashTable {
  #hashes: Uint32Array;
  /** 0 marks a free slot. */
  #eventIds: Uint32Array;
  #size = 0;
  lastAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(slots: number) {
    this.#hashes = new Uint32Array(HASH_WORDS * slots);
    this.#eventIds = new Uint32Array(slots);
  }

  get isFull(): boolean {
    return this.#size >= LOAD_FACTOR_MAX * SLOTS_MAX;
  }

  eventOf(words: Uint32Array): number | undefined {
    return this.#eventIds[this.#slotOf(words)] || undefined;
  }

  /** The table must not contain the hash yet. */
  add(words: Uint32Array, eventId: number, at: Millis): void {
    if (this.#size >= LOAD_FACTOR_MAX * this.#eventIds.length) this.#grow();
    this.#put(words, Math.min(eventId, EVENT_ID_MAX));
    this.#size++;
    this.lastAt = Math.max(this.lastAt, at);
  }

  #put(words: Uint32Array, eventId: number): void {
    const slot = this.#slotOf(words);
    this.#hashes.set(words, slot * HASH_WORDS);
    this.#eventIds[slot] = eventId;
  }

  /** Returns the hash's slot, or the free slot where the hash belongs. */
  #slotOf(words: Uint32Array): number {
    const slots = this.#eventIds.length;
    let slot = (words[0] as number) % slots;
    while (this.#eventIds[slot] !== 0 && !this.#isAt(slot * HASH_WORDS, words)) slot = (slot + 1) % slots;
    return slot;
  }

  #isAt(from: number, words: Uint32Array): boolean {
    for (let index = 0; index < HASH_WORDS; index++) if (words[index] !== this.#hashes[from + index]) return false;
    return true;
  }

  #grow(): void {
    const [hashes, eventIds] = [this.#hashes, this.#eventIds];
    const slots = Math.min(eventIds.length * GROWTH_FACTOR, SLOTS_MAX);
    this.#hashes = new Uint32Array(HASH_WORDS * slots);
    this.#eventIds = new Uint32Array(slots);
    for (const [slot, eventId] of eventIds.entries()) {
      if (eventId !== 0) this.#put(hashes.subarray(slot * HASH_WORDS, (slot + 1) * HASH_WORDS), eventId);
    }
  }
}
