// Rejects requests from addresses and agents over their rate limits, and all requests once the service is stopping.
import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { type ClientNetwork, clientNetwork, isForwarded } from '../connections/client-address.ts';
import type { MainThreadMeter, Payer } from '../process/main-thread.ts';
import { type ForumError, rateError, unavailable } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface RateLimits {
  readonly perSecond: number;
  /** Requests accepted at once after an idle period. */
  readonly burst: number;
}

/** Beyond this number, the least recently seen callers are forgotten, so that memory is bounded. */
const CALLERS_MAX = 100_000;

/**
 * A token bucket for each caller, by the generic cell rate algorithm: the limiter stores only the time at which a bucket is full again,
 * so no timer refills buckets, and full buckets take no memory.
 */
export class RateLimit {
  readonly #interval: Millis;
  readonly #fillTime: Millis;
  readonly #callersMax: number;
  readonly #clock: () => Millis;
  /** When each caller's bucket is full again; callers in neither map have full buckets. */
  #recent = new Map<string, Millis>();
  #older: ReadonlyMap<string, Millis> = new Map();
  #rotateAt: Millis;

  /** `clock` must be monotonic. */
  constructor({ perSecond, burst }: RateLimits, clock = performance.now.bind(performance), callersMax = CALLERS_MAX) {
    this.#interval = 1000 / perSecond;
    this.#fillTime = this.#interval * burst;
    this.#callersMax = callersMax;
    this.#clock = clock;
    this.#rotateAt = clock() + this.#fillTime;
  }

  /** Takes a token from the caller's bucket and returns 0, or returns the milliseconds until a token is available. */
  take(caller: string): Millis {
    const wait = this.wait(caller);
    if (wait === 0) this.charge(caller, 1);
    return wait;
  }

  wait(caller: string): Millis {
    const slack = this.#fillTime - this.#interval;
    return Math.max(0, this.#fullAt(caller) - slack - this.#clock());
  }

  /** Takes tokens or fractions of tokens, even from an empty bucket: the caller then waits longer. */
  charge(caller: string, tokens: number): void {
    const now = this.#clock();
    if (now >= this.#rotateAt || this.#recent.size >= this.#callersMax) this.#forget(now);
    this.#recent.set(caller, Math.max(now, this.#fullAt(caller)) + this.#interval * tokens);
  }

  /** Forgets callers whose buckets are full again, but keeps callers in debt. */
  #forget(now: Millis): void {
    const inDebt = new Map<string, Millis>();
    for (const [caller, fullAt] of this.#older) {
      // Leaves room for new callers: if there are too many, each rotation forgets some.
      if (inDebt.size >= this.#callersMax / 2) break;
      if (fullAt > now && !this.#recent.has(caller)) inDebt.set(caller, fullAt);
    }
    this.#older = this.#recent;
    this.#recent = inDebt;
    this.#rotateAt = now + this.#fillTime;
  }

  /** Returns an unused token to the caller's bucket. */
  refund(caller: string): void {
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
  /** Milliseconds of main-thread time. */
  readonly workPerAddress: RateLimits;
  /** Unsigned registrations of new keys. */
  readonly registrationsPerAddress: RateLimits;
}

interface Client extends Payer {
  readonly network: string;
}

export class RequestLimits {
  readonly #options: RequestLimitsOptions;
  #hasReported = false;
  readonly #clients = new WeakMap<Socket, Client>();
  readonly #rate: RateLimit;
  readonly #work: RateLimit;
  readonly #registrations: RateLimit;
  #isClosed = false;

  constructor(options: RequestLimitsOptions) {
    this.#options = options;
    this.#rate = new RateLimit(options.perAddress);
    this.#work = new RateLimit(options.workPerAddress);
    this.#registrations = new RateLimit(options.registrationsPerAddress);
  }

  networkOf(incoming: IncomingMessage): string {
    return this.#clientOf(incoming).network;
  }

  describeClient(incoming: IncomingMessage): ClientNetwork {
    return clientNetwork(this.#options.trustedProxies, incoming);
  }

  #clientOf(incoming: IncomingMessage): Client {
    const known = this.#clients.get(incoming.socket);
    if (known !== undefined) return known;
    const { network, isProxied } = this.describeClient(incoming);
    const client = { network, charge: (millis: Millis) => this.#work.charge(network, millis) };
    if (!isProxied) this.#clients.set(incoming.socket, client);
    if (!isProxied && isForwarded(incoming)) this.#reportUntrustedProxy(network);
    return client;
  }

  #reportUntrustedProxy(network: string): void {
    if (!this.#hasReported) this.#options.onUntrustedProxy?.(network);
    this.#hasReported = true;
  }

  /** Rejects all further requests with FORUM_ERR_UNAVAILABLE. */
  close(): void {
    this.#isClosed = true;
  }

  /** Returns an error if the request must be rejected. Charges the caller's main-thread time to the request's network from here on. */
  reject(incoming: IncomingMessage): ForumError | undefined {
    if (this.#isClosed) return unavailable('the service is stopping, retry');
    const client = this.#clientOf(incoming);
    this.#options.meter.enter(client);
    const debt = this.workError(client.network);
    if (debt !== undefined) return debt;
    const wait = this.#rate.take(client.network);
    return wait > 0 ? rateError(wait, 'requests from your address') : undefined;
  }

  /** Returns an error if the network is over its budget of main-thread time. */
  workError(network: string): ForumError | undefined {
    const wait = this.#work.wait(network);
    return wait > 0 ? rateError(wait, 'costly requests from your address') : undefined;
  }

  /** Returns how long to delay reading a new connection; 0 for a trusted proxy's, whose requests count against its clients. */
  connectionWait(socket: Socket): Millis {
    const { network, isProxied } = clientNetwork(this.#options.trustedProxies, { socket, headers: {} });
    return isProxied ? 0 : this.workWait(network);
  }

  /** Milliseconds until the network is within its budget of main-thread time. */
  workWait(network: string): Millis {
    return this.#work.wait(network);
  }

  /** Charges an unsigned registration of a new key, because keys cost nothing to generate. Throws FORUM_ERR_RATE. */
  requireRegistration(incoming: IncomingMessage | undefined): void {
    const wait = this.#registrations.take(incoming === undefined ? '' : this.networkOf(incoming));
    if (wait > 0) throw rateError(wait, 'registrations from your address');
  }
}
