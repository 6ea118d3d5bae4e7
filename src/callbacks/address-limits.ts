// Limits the concurrent requests to one address and port, so that callbacks can't be used to attack it.

const CONCURRENT_MAX = 4;
const TIMEOUTS_MAX = 3;
/** Bounds the memory: beyond this number, the oldest idle address is forgotten. */
const REMEMBERED_MAX = 10_000;

interface Address {
  running: number;
  /** The number of consecutive timeouts. */
  timeouts: number;
}

export class AddressLimits {
  readonly #addresses = new Map<string, Address>();

  isBusy(key: string): boolean {
    const { running = 0, timeouts = 0 } = this.#addresses.get(key) ?? {};
    return running >= (timeouts >= TIMEOUTS_MAX ? 1 : CONCURRENT_MAX);
  }

  begin(key: string): void {
    const address = this.#addresses.get(key) ?? { running: 0, timeouts: 0 };
    address.running++;
    this.#addresses.set(key, address);
  }

  end(key: string, isTimeout: boolean): void {
    const address = this.#addresses.get(key);
    if (address === undefined) return;
    address.running--;
    address.timeouts = isTimeout ? address.timeouts + 1 : 0;
    // Deleting and setting the key makes it the newest of the map.
    this.#addresses.delete(key);
    if (address.running > 0 || address.timeouts > 0) this.#addresses.set(key, address);
    if (this.#addresses.size > REMEMBERED_MAX) this.#forgetOne();
  }

  #forgetOne(): void {
    for (const [key, { running }] of this.#addresses) {
      if (running > 0) continue;
      this.#addresses.delete(key);
      return;
    }
  }
}
