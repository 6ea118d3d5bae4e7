// A bounded map that forgets what was not used for long: whatever it forgets is folded from the log again.

/** Two generations, so that a look at a recent entry writes nothing. */
export class BoundedCache<Key, Value> {
  readonly #generationMax: number;
  #recent = new Map<Key, Value>();
  #older: Map<Key, Value> = new Map();

  constructor(entriesMax: number) {
    this.#generationMax = Math.max(1, Math.ceil(entriesMax / 2));
  }

  get(key: Key): Value | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: Key, value: Value): void {
    if (this.#recent.size >= this.#generationMax && !this.#recent.has(key)) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, value);
  }

  delete(key: Key): void {
    this.#recent.delete(key);
    this.#older.delete(key);
  }
}
