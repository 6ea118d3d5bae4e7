// Rejects requests of addresses and agents beyond their rates, and all requests once the service is stopping.
import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { type ClientNetwork, clientNetwork, isForwarded } from '../connections/client-address.ts';
import type { MainThreadMeter, Payer } from '../process/main-thread.ts';
import { type ForumError, rateError, unavailable } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface RateLimits {
  readonly perSecond: number;
  /** Requests accepted at once after a pause. */
  readonly burst: number;
}

/** Beyond this number, the least recent callers are forgotten, so that memory is bounded. */
const CALLERS_MAX = 100_000;

/**
 * A token bucket for each caller, by the generic cell rate algorithm: a bucket is the time at which it is full again, so nothing
 * refills it, and a full one is forgotten.
 */
export class RateLimit {
  readonly #interval: Millis;
  readonly #slack: Millis;
  readonly #fillTime: Millis;
  readonly #callersMax: number;
  readonly #clock: () => Millis;
  /** When each caller's bucket is full again; callers in neither map have full ones. */
  #recent = new Map<string, Millis>();
  #older: ReadonlyMap<string, Millis> = new Map();
  #rotateAt: Millis;

  /** `clock` must be monotonic. */
  constructor({ perSecond, burst }: RateLimits, clock = performance.now.bind(performance), callersMax = CALLERS_MAX) {
    this.#interval = 1000 / perSecond;
    this.#fillTime = this.#interval * burst;
    this.#slack = this.#fillTime - this.#interval;
    this.#callersMax = callersMax;
    this.#clock = clock;
    this.#rotateAt = clock() + this.#fillTime;
  }

  /** Takes a token from the caller's bucket and returns 0, or returns the milliseconds until there is one. */
  take(caller: string): Millis {
    const wait = this.wait(caller);
    if (wait === 0) this.charge(caller, 1);
    return wait;
  }

  wait(caller: string): Millis {
    return Math.max(0, this.#fullAt(caller) - this.#slack - this.#clock());
  }

  /** Takes tokens, or fractions, even if the bucket lacks them: the caller then waits longer. */
  charge(caller: string, tokens: number): void {
    const now = this.#clock();
    if (now >= this.#rotateAt || this.#recent.size >= this.#callersMax) this.#forget(now);
    this.#recent.set(caller, Math.max(now, this.#fullAt(caller)) + this.#interval * tokens);
  }

  /** Forgets callers whose buckets are full again. Those in debt are kept for longer than a bucket takes to fill. */
  #forget(now: Millis): void {
    const owing = new Map<string, Millis>();
    for (const [caller, fullAt] of this.#older) {
      // Leaves space for others: with too many callers, a rotation always forgets some.
      if (owing.size >= this.#callersMax / 2) break;
      if (fullAt > now && !this.#recent.has(caller)) owing.set(caller, fullAt);
    }
    this.#older = this.#recent;
    this.#recent = owing;
    this.#rotateAt = now + this.#fillTime;
  }

  /** Returns an unused token to the caller's bucket. */
  giveBack(caller: string): void {
    const fullAt = this.#fullAt(caller);
    if (fullAt > 0) this.#recent.set(caller, fullAt - this.#interval);
  }

  #fullAt(caller: string): Millis {
    return this.#recent.get(caller) ?? this.#older.get(caller) ?? 0;
  }

  get callers(): number {
    return this.#recent.size + this.#older.size;
  }
}

interface RequestLimitsOptions {
  readonly meter: MainThreadMeter;
  readonly trustedProxies: BlockList;
  /** Called once, with the first address that forwards requests and is not a trusted proxy. */
  readonly onUntrustedProxy?: (address: string) => void;
  readonly perAddress: RateLimits;
  /** Milliseconds of the main thread. */
  readonly workPerAddress: RateLimits;
  /** Unsigned registrations of new keys. */
  readonly registrationsPerAddress: RateLimits;
}

interface Client extends Payer {
  readonly network: string;
}

export class RequestLimits {
  readonly #meter: MainThreadMeter;
  readonly #trustedProxies: BlockList;
  #onUntrustedProxy: ((address: string) => void) | undefined;
  readonly #clients = new WeakMap<Socket, Client>();
  readonly #rate: RateLimit;
  readonly #work: RateLimit;
  readonly #registrations: RateLimit;
  #isClosed = false;

  constructor(options: RequestLimitsOptions) {
    const { trustedProxies, onUntrustedProxy, perAddress, workPerAddress, registrationsPerAddress } = options;
    this.#meter = options.meter;
    this.#trustedProxies = trustedProxies;
    this.#onUntrustedProxy = onUntrustedProxy;
    this.#rate = new RateLimit(perAddress);
    this.#work = new RateLimit(workPerAddress);
    this.#registrations = new RateLimit(registrationsPerAddress);
  }

  networkOf(incoming: IncomingMessage): string {
    return this.#clientOf(incoming).network;
  }

  describeClient(incoming: IncomingMessage): ClientNetwork {
    return clientNetwork(this.#trustedProxies, incoming);
  }

  #clientOf(incoming: IncomingMessage): Client {
    const known = this.#clients.get(incoming.socket);
    if (known !== undefined) return known;
    const { network, isProxied } = clientNetwork(this.#trustedProxies, incoming);
    const client = { network, charge: (millis: Millis) => this.#work.charge(network, millis) };
    if (!isProxied) this.#clients.set(incoming.socket, client);
    if (!isProxied && isForwarded(incoming)) this.#noteUntrusted(network);
    return client;
  }

  #noteUntrusted(network: string): void {
    this.#onUntrustedProxy?.(network);
    this.#onUntrustedProxy = undefined;
  }

  /** From now on every request is rejected with FORUM_ERR_UNAVAILABLE. */
  close(): void {
    this.#isClosed = true;
  }

  /** The error for a request that is not admitted. The calling context's main-thread time is charged to its network from here on. */
  reject(incoming: IncomingMessage): ForumError | undefined {
    if (this.#isClosed) return unavailable('the service is stopping, retry');
    const client = this.#clientOf(incoming);
    this.#meter.enter(client);
    const debt = this.workError(client.network);
    if (debt !== undefined) return debt;
    const wait = this.#rate.take(client.network);
    return wait > 0 ? rateError(wait, 'requests from your address') : undefined;
  }

  /** The error for a network over its budget of main-thread time. */
  workError(network: string): ForumError | undefined {
    const wait = this.#work.wait(network);
    return wait > 0 ? rateError(wait, 'costly requests from your address') : undefined;
  }

  /** How long a new connection should not be read; 0 for a trusted proxy's, whose requests count against others. */
  connectionWait(socket: Socket): Millis {
    const { network, isProxied } = clientNetwork(this.#trustedProxies, { socket, headers: {} });
    return isProxied ? 0 : this.workWait(network);
  }

  /** Milliseconds until the network is within its budget of main-thread time. */
  workWait(network: string): Millis {
    return this.#work.wait(network);
  }

  /** Charges an unsigned registration of a new key: keys cost nothing to make. Throws FORUM_ERR_RATE. */
  requireRegistration(incoming: IncomingMessage | undefined): void {
    const wait = this.#registrations.take(incoming === undefined ? '' : this.networkOf(incoming));
    if (wait > 0) throw rateError(wait, 'registrations from your address');
  }
}
