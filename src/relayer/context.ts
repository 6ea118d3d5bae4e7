// The contexts that the relayer passes to its steps, ordered by lifetime, longest first.
import type { PrivateKeyAccount } from 'viem/accounts';
import type { ChamberState } from '../../projections/chamber.ts';
import type { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { RecordBasis } from '../forum/commands.ts';
import type { ServiceFact } from '../vocabulary/events.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';
import type { Pauses, SimulatedReverts } from './backoff.ts';
import type { Block } from './chain-client.ts';
import type { ContractProfile } from './contracts.ts';
import type { FeeOffer, FeeSettings } from './fees.ts';
import type { Funds } from './funds.ts';
import type { JobBoard } from './job-board.ts';
import type { LogSearch } from './log-search.ts';
import type { NonceQueue } from './nonce-queue.ts';
import type { HighestNonces } from './nonce-user.ts';
import type { Rpc } from './rpc.ts';
import type { Spending } from './spending.ts';
import type { Signers } from './transactions.ts';

export interface RelayerForum {
  now(): Millis;
  /** The token of this node's lease; undefined while another node leads. */
  lease(): string | undefined;
  /** Chambers past their reveal deadline with open jobs, oldest deadline first. */
  unsettledChambers(limit: number): Promise<readonly number[]>;
  /** Settled chambers, latest reveal deadline first: a reorganization may undo their transactions. */
  settledChambers(limit: number): Promise<readonly number[]>;
  /** The folded chamber and the Merkle root over all its moves. */
  chamber(chamberId: number): Promise<ClosedChamber | undefined>;
  /** Resolves when the service event is durable; rejects if its basis is outdated. */
  record(chamberId: number, fact: ServiceFact, basis: RecordBasis): Promise<unknown>;
}

export interface ClosedChamber {
  readonly state: ChamberState;
  readonly root: Hex;
}

export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface RelayerConfig extends FeeSettings {
  readonly rpcUrl: string;
  /** Defaults to the chain of the log's transactions, or to the RPC's chain if the log has none. */
  readonly chainId?: number | undefined;
  readonly contracts: ContractProfile;
  readonly registryAddress: Hex;
  readonly factoryAddress: Hex;
  readonly privateKey: Hex;
  /** The number of blocks required before an outcome is recorded, including the transaction's own; at least 1. */
  readonly confirmations: number;
  readonly feeBumpSeconds: number;
  /** Whether the chain is a single node that mines only when it gets a transaction, so that its first response is final. */
  readonly isSingleNode?: boolean;
}

/** Lives as long as the relayer. */
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

/** Lives as long as this node holds the lease. */
export interface RelayerContext extends LastingContext {
  readonly alerts: Alerts;
  readonly repeats: RepeatedLog;
  readonly stopwatches: Stopwatches;
  readonly pauses: Pauses;
  readonly simulatedReverts: SimulatedReverts;
  readonly queue: NonceQueue;
  /** For each job, the block that completes the confirmations of its transaction. No receipt is read before that block. */
  readonly confirmedWith: Map<string, number>;
  /** For each job, the number of attempts before this node took the lease. */
  readonly formerAttempts: Map<string, number>;
}

export interface RoundContext extends RelayerContext {
  /** The lease token at the start of the round; it fences every append. */
  readonly lease: string;
  readonly chainId: number;
  readonly head: Block;
  /** The account's first nonce that no block has used. */
  readonly nonce: number;
  /** Read at most once a round. */
  readonly fees: () => Promise<FeeOffer>;
  readonly balance: () => Promise<bigint>;
}

const ALERTS_NAMED_MAX = 3;

/** Conditions that need an operator. Each is logged, and shown in /health until it is cleared. */
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

  /** The newest alerts first, so that a permanent alert does not hide a new one. */
  get reason(): string | undefined {
    if (this.#raised.size === 0) return undefined;
    const newest = [...this.#raised].slice(-ALERTS_NAMED_MAX).reverse();
    const more = this.#raised.size - newest.length;
    return newest.map((alert) => alert.join(': ')).join('; ') + (more > 0 ? `; and ${more} more` : '');
  }
}

/** Measures durations with the injected clock, for example how long a transaction has been stuck. */
export class Stopwatches {
  readonly #clock: () => Millis;
  readonly #startedAt = new Map<string, Millis>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  /** Has no effect on a running stopwatch. */
  start(key: string): void {
    if (!this.#startedAt.has(key)) this.#startedAt.set(key, this.#clock());
  }

  /** Starts the stopwatch if it is not running. */
  elapsed(key: string): Millis {
    this.start(key);
    return this.#clock() - (this.#startedAt.get(key) ?? 0);
  }

  stop(...keys: readonly string[]): void {
    for (const key of keys) this.#startedAt.delete(key);
  }
}
