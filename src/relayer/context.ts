// The context of the relayer's steps: what it needs of the service, what a start opens, and the chain as it was when the
// round began.
import type { PrivateKeyAccount } from 'viem/accounts';
import type { ChamberState } from '../../projections/chamber.ts';
import type { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { RecordBasis } from '../forum/commands.ts';
import type { ServiceFact } from '../vocabulary/events.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';
import type { Block } from './chain-client.ts';
import type { ContractProfile } from './contracts.ts';
import type { FeeOffer, FeeSettings } from './fees.ts';
import type { Funds } from './funds.ts';
import type { HighestNonces } from './highest-nonces.ts';
import type { JobBoard } from './job-board.ts';
import type { LogSearch } from './log-search.ts';
import type { NonceQueue } from './nonce-queue.ts';
import type { Pauses, Refusals } from './patience.ts';
import type { Rpc } from './rpc.ts';
import type { Spending } from './spending.ts';
import type { Signers } from './transactions.ts';

export interface RelayerForum {
  now(): Millis;
  /** The token under which this node relays; undefined while another one does. */
  lease(): string | undefined;
  /** Chambers past their reveal deadline that the relayer has work for, oldest deadline first. */
  unsettledChambers(limit: number): Promise<readonly number[]>;
  /** Settled chambers, latest reveal deadline first: their transactions are watched for reorganisations. */
  settledChambers(limit: number): Promise<readonly number[]>;
  /** The folded chamber and the Merkle root over all its moves. */
  chamber(chamberId: number): Promise<ClosedChamber | undefined>;
  /** Appends a service event, durable when the promise resolves; throws if the basis no longer holds. */
  record(chamberId: number, fact: ServiceFact, basis: RecordBasis): Promise<unknown>;
}

export interface ClosedChamber {
  readonly state: ChamberState;
  readonly root: Hex;
}

/** The part of a pino logger that the relayer needs. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface RelayerConfig extends FeeSettings {
  readonly rpcUrl: string;
  /** The chain's id; by default that of the log's transactions, and for a log without any the one that the RPC reports. */
  readonly chainId?: number | undefined;
  readonly contracts: ContractProfile;
  readonly registryAddress: Hex;
  readonly factoryAddress: Hex;
  readonly privateKey: Hex;
  /** Blocks, the transaction's own included, before an outcome is recorded; at least 1. */
  readonly confirmations: number;
  readonly feeBumpSeconds: number;
  /** The node is the service's own development chain: its first response is final, and it mines no block without a transaction. */
  readonly isOwnNode?: boolean;
}

/** What lasts as long as the relayer. */
export interface LastingContext {
  readonly rpc: Rpc;
  readonly account: PrivateKeyAccount;
  readonly signers: Signers;
  readonly config: RelayerConfig;
  readonly forum: RelayerForum;
  readonly logger: Logger;
  readonly logs: LogSearch;
  readonly highestNonces: HighestNonces;
  readonly board: JobBoard;
  readonly spending: Spending;
  readonly funds: Funds;
  /** Deployments that failed since the start. */
  readonly failed: { count: number };
}

/** Also what one hold of the lease remembers. */
export interface RelayerContext extends LastingContext {
  readonly alerts: Alerts;
  readonly repeats: RepeatedLog;
  readonly stopwatches: Stopwatches;
  readonly pauses: Pauses;
  readonly refusals: Refusals;
  readonly queue: NonceQueue;
  /** The block with which the transaction of a job has its confirmations: nothing is read about it before. */
  readonly confirmedWith: Map<string, number>;
  /** At how many nonces a job had been signed when this hold first saw it. */
  readonly formerAttempts: Map<string, number>;
}

export interface RoundContext extends RelayerContext {
  /** Held when the round began, and fences all that it records. */
  readonly lease: string;
  readonly chainId: number;
  readonly head: Block;
  /** The account's first nonce that no block has used. */
  readonly nonce: number;
  /** Read once a round, when a transaction is to be signed. */
  readonly fees: () => Promise<FeeOffer>;
  readonly balance: () => Promise<bigint>;
}

const ALERTS_NAMED_MAX = 3;

/** What stops the relayer and needs an operator: in the service's log and in /health until it is cleared. */
export class Alerts {
  readonly #logger: Logger;
  readonly #repeats: RepeatedLog;
  readonly #raised = new Map<string, string>();

  constructor(logger: Logger, repeats: RepeatedLog) {
    this.#logger = logger;
    this.#repeats = repeats;
  }

  raise(subject: string, reason: string): void {
    this.#raised.set(subject, reason);
    this.#repeats.report(`alert ${subject}`, reason, (repeats) => {
      this.#logger.error({ subject, reason, ...repeats }, 'relayer alert raised');
    });
  }

  clear(subject: string): void {
    if (!this.#raised.delete(subject)) return;
    this.#repeats.end(`alert ${subject}`, () => this.#logger.info({ subject }, 'relayer alert cleared'));
  }

  has(subject: string): boolean {
    return this.#raised.has(subject);
  }

  get count(): number {
    return this.#raised.size;
  }

  /** In a sentence, the newest first: one that stays, such as a root that the log lost, must not hide another. */
  get reason(): string | undefined {
    if (this.#raised.size === 0) return undefined;
    const newest = [...this.#raised].slice(-ALERTS_NAMED_MAX).reverse();
    const more = this.#raised.size - newest.length;
    return newest.map((alert) => alert.join(': ')).join('; ') + (more > 0 ? `; and ${more} more` : '');
  }
}

/** How long something has lasted, by the injected clock: a stuck transaction, a late receipt, a delay between retries. */
export class Stopwatches {
  readonly #clock: () => Millis;
  readonly #startedAt = new Map<string, Millis>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  /** Does nothing when it is running. */
  start(key: string): void {
    if (!this.#startedAt.has(key)) this.#startedAt.set(key, this.#clock());
  }

  /** Milliseconds since the start, which is now if it is not running. */
  elapsed(key: string): Millis {
    this.start(key);
    return this.#clock() - (this.#startedAt.get(key) ?? 0);
  }

  /** Whether it was started less than `millis` ago; if not, it is stopped. */
  isWithin(key: string, millis: Millis): boolean {
    if (this.#startedAt.has(key) && this.elapsed(key) < millis) return true;
    this.stop(key);
    return false;
  }

  stop(...keys: readonly string[]): void {
    for (const key of keys) this.#startedAt.delete(key);
  }
}
