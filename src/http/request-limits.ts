// Rejects the requests of addresses and agents that send too many, and all requests once the service is stopping.
import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { type ClientNetwork, clientNetwork, isForwarded } from '../connections/client-address.ts';
import type { MainThreadMeter, Payer } from '../process/main-thread.ts';
import { type ForumError, rateError, unavailable } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface RateLimits {
  /** Sustained. */
  readonly perSecond: number;
  /** The number of requests at once, after a pause. */
  readonly burst: number;
}

/** The least recent callers beyond this number start with a full bucket again: bounded memory comes before perfect fairness. */
const CALLERS_MAX = 100_000;

/**
 * Token buckets, one for each caller, by the generic cell rate algorithm: a bucket is the time at which it is full again,
 * so nothing refills it, and one that is full is forgotten.
 */
export class RateLimit {
  readonly #interval: Millis;
  readonly #slack: Millis;
  readonly #fillTime: Millis;
  readonly #callersMax: number;
  readonly #clock: () => Millis;
  /** When each caller's bucket is full again; a caller in neither map has a full one. */
  #recent = new Map<string, Millis>();
  #older: ReadonlyMap<string, Millis> = new Map();
  #rotateAt: Millis;

  /** The clock is monotonic. */
  constructor({ perSecond, burst }: RateLimits, clock = performance.now.bind(performance), callersMax = CALLERS_MAX) {
    this.#interval = 1000 / perSecond;
    this.#fillTime = this.#interval * burst;
    this.#slack = this.#fillTime - this.#interval;
    this.#callersMax = callersMax;
    this.#clock = clock;
    this.#rotateAt = clock() + this.#fillTime;
  }

  /** Takes a token from the caller's bucket and returns 0, or returns how many milliseconds the caller must wait for one. */
  take(caller: string): Millis {
    const wait = this.wait(caller);
    if (wait === 0) this.charge(caller, 1);
    return wait;
  }

  /** How many milliseconds the caller must wait for a token. */
  wait(caller: string): Millis {
    return Math.max(0, this.#fullAt(caller) - this.#slack - this.#clock());
  }

  /** Takes tokens, or parts of one, from the caller's bucket also where it does not hold them: the caller then waits for longer. */
  charge(caller: string, tokens: number): void {
    const now = this.#clock();
    if (now >= this.#rotateAt || this.#recent.size >= this.#callersMax) this.#forget(now);
    this.#recent.set(caller, Math.max(now, this.#fullAt(caller)) + this.#interval * tokens);
  }

  /** Forgets callers whose buckets are full again. One that is in debt is known for longer than its bucket takes to fill. */
  #forget(now: Millis): void {
    const owing = new Map<string, Millis>();
    for (const [caller, fullAt] of this.#older) {
      // Room is left for others: a rotation always forgets some when there are too many.
      if (owing.size >= this.#callersMax / 2) break;
      if (fullAt > now && !this.#recent.has(caller)) owing.set(caller, fullAt);
    }
    this.#older = this.#recent;
    this.#recent = owing;
    this.#rotateAt = now + this.#fillTime;
  }

  /** Puts a token back into the caller's bucket that was taken for nothing. */
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
  /** Called once, with the first address that forwards requests of others and is no trusted proxy. */
  readonly onUntrustedProxy?: (address: string) => void;
  readonly perAddress: RateLimits;
  /** Milliseconds of the main thread. */
  readonly workPerAddress: RateLimits;
  /** The rates of keys that are not registered yet. */
  readonly registrationsPerAddress: RateLimits;
}

/** Whom a request counts against. */
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

  /** The network that a request counts against. */
  networkOf(incoming: IncomingMessage): string {
    return this.#clientOf(incoming).network;
  }

  /** The same, and how it is known. */
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

  /** Closes: from now on every request is rejected with FORUM_ERR_UNAVAILABLE. */
  close(): void {
    this.#isClosed = true;
  }

  /** The error for a request that is not admitted. From here on the calling context works for its network. */
  reject(incoming: IncomingMessage): ForumError | undefined {
    if (this.#isClosed) return unavailable('the service is stopping, retry');
    const client = this.#clientOf(incoming);
    this.#meter.enter(client);
    const debt = this.workError(client.network);
    if (debt !== undefined) return debt;
    const wait = this.#rate.take(client.network);
    return wait > 0 ? rateError(wait, 'requests from your address') : undefined;
  }

  /** The error for a network that took more of the main thread than it may; undefined for any other. */
  workError(network: string): ForumError | undefined {
    const wait = this.#work.wait(network);
    return wait > 0 ? rateError(wait, 'costly requests from your address') : undefined;
  }

  /** How long no request of a new connection should be read; 0 for a trusted proxy's, whose requests count against others. */
  connectionWait(socket: Socket): Millis {
    const { network, isProxied } = clientNetwork(this.#trustedProxies, { socket, headers: {} });
    return isProxied ? 0 : this.workWait(network);
  }

  /** How long nothing more should be done for the network. */
  workWait(network: string): Millis {
    return this.#work.wait(network);
  }

  /** Takes a token for an unsigned registration of a new key, which costs nothing to make; throws FORUM_ERR_RATE. */
  requireRegistration(incoming: IncomingMessage | undefined): void {
    const wait = this.#registrations.take(incoming === undefined ? '' : this.networkOf(incoming));
    if (wait > 0) throw rateError(wait, 'registrations from your address');
  }
}
