// A compact set of event ids, one bit each.
const CHUNK_BYTES = 1_024;
const BITS = 8;

export class EventIds {
  readonly #chunks = new Map<number, Uint8Array>();

  add(eventId: number): void {
    const number = Math.floor(eventId / (CHUNK_BYTES * BITS));
    const chunk = this.#chunks.get(number) ?? new Uint8Array(CHUNK_BYTES);
    this.#chunks.set(number, chunk);
    const at = Math.floor(eventId / BITS) % CHUNK_BYTES;
    chunk[at] = (chunk[at] ?? 0) | (1 << (eventId % BITS));
  }

  has(eventId: number): boolean {
    const chunk = this.#chunks.get(Math.floor(eventId / (CHUNK_BYTES * BITS)));
    const byte = chunk?.[Math.floor(eventId / BITS) % CHUNK_BYTES] ?? 0;
    return (byte & (1 << (eventId % BITS))) !== 0;
  }
}
