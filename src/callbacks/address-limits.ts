// Limits the concurrent requests to one address and port, so that callbacks can't be used to attack it. Many agents may share an address:
// each kind of request has a slot that the others can't take, so that receivers that hang don't stop the deliveries to those that respond.

/** `proven`: a delivery to an agent whose last deliveries succeeded. `unproven`: any other delivery. */
export type RequestKind = 'proven' | 'unproven' | 'challenge';

const CONCURRENT_MAX = 4;
const CONCURRENT_OF_KIND_MAX: Readonly<Record<RequestKind, number>> = {
  proven: CONCURRENT_MAX,
  unproven: 2,
  challenge: 1,
};
const TIMEOUTS_MAX = 3;
/** Bounds the memory: beyond this number, the oldest idle address is forgotten. */
const REMEMBERED_MAX = 10_000;

interface Address {
  running: number;
  /** `timeouts` counts the consecutive timeouts up to now. */
  readonly kinds: Readonly<Record<RequestKind, { running: number; timeouts: number }>>;
}

export class AddressLimits {
  readonly #addresses = new Map<string, Address>();

  isBusy(key: string, kind: RequestKind): boolean {
    const address = this.#addresses.get(key);
    if (address === undefined) return false;
    const { running, timeouts } = address.kinds[kind];
    return (
      address.running >= CONCURRENT_MAX || running >= (timeouts >= TIMEOUTS_MAX ? 1 : CONCURRENT_OF_KIND_MAX[kind])
    );
  }

  begin(key: string, kind: RequestKind): void {
    const address = this.#addresses.get(key) ?? newAddress();
    address.running++;
    address.kinds[kind].running++;
    this.#addresses.set(key, address);
  }

  end(key: string, kind: RequestKind, isTimeout: boolean): void {
    const address = this.#addresses.get(key);
    if (address === undefined) return;
    const ofKind = address.kinds[kind];
    address.running--;
    ofKind.running--;
    ofKind.timeouts = isTimeout ? ofKind.timeouts + 1 : 0;
    // Deleting and setting the key makes it the newest of the map.
    this.#addresses.delete(key);
    if (address.running > 0 || Object.values(address.kinds).some(({ timeouts }) => timeouts > 0))
      this.#addresses.set(key, address);
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

function newAddress(): Address {
  const idle = () => ({ running: 0, timeouts: 0 });
  return { running: 0, kinds: { proven: idle(), unproven: idle(), challenge: idle() } };
}
