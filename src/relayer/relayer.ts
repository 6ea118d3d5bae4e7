// The relayer: commits the root of every closed chamber and then deploys the graduated ideas, each exactly once, despite crashes and
// faults. With several nodes, only the holder of the lease works. This file has the loop, its backoff and its status; see round.ts for a
// round and state-machine.ts for a job.
import { setTimeout as pause } from 'node:timers/promises';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import { Pauses, SimulatedReverts } from './backoff.ts';
import {
  Alerts,
  type LastingContext,
  type Logger,
  type RelayerConfig,
  type RelayerContext,
  type RelayerForum,
  Stopwatches,
} from './context.ts';
import { Funds, type FundsFigures } from './funds.ts';
import { JobBoard } from './job-board.ts';
import { LogSearch } from './log-search.ts';
import { NonceQueue } from './nonce-queue.ts';
import { HighestNonces } from './nonce-user.ts';
import { newMemory, type RoundMemory, runRound } from './round.ts';
import { openRpc, RpcError } from './rpc.ts';
import { Spending, type SpendingFigures } from './spending.ts';
import { openAccount, Signers } from './transactions.ts';

export interface RelayerStatus {
  /** Whether this node holds the lease. */
  readonly leads: boolean;
  /** False while an operator is needed. An RPC outage of less than 30 s does not count. */
  readonly ok: boolean;
  /** Contains no secrets. */
  readonly reason?: string;
  /** Open jobs of closed chambers. */
  readonly pending: number;
  /** Deployments that failed since the start. */
  readonly failed: number;
}

export interface RelayerOptions {
  readonly config: RelayerConfig;
  readonly forum: RelayerForum;
  readonly logger: Logger;
  /** A monotonic clock, for durations. */
  readonly clock?: () => Millis;
  readonly rpcTimeoutMillis?: Millis;
}

/** Chambers that wait for blocks or are paused do not count. */
const CHAMBERS_PER_ROUND = 64;
const IDLE_MILLIS = 250;
const FIRST_DELAY_MILLIS = 20;
const DELAY_MILLIS_MAX = 2_000;
const BACKOFF_MILLIS = 100;
const BACKOFF_MILLIS_MAX = 5_000;
/** How often an idle relayer reads the chain to detect reorganizations and outages. */
const HEARTBEAT_MILLIS = 5_000;
/** A longer outage raises an alert. */
const OUTAGE_MILLIS_MAX = 30_000;
/** The subject of the alert and log line for an outage. */
const OUTAGE = 'every round fails';

export class Relayer {
  readonly #clock: () => Millis;
  readonly #stopping = new AbortController();
  readonly #lasting: LastingContext;
  #running: Promise<void> | undefined;
  #term: LeaseTerm;

  constructor({ config, forum, logger, clock = () => performance.now(), rpcTimeoutMillis }: RelayerOptions) {
    this.#clock = clock;
    const rpc = openRpc(config.rpcUrl, { timeoutMillis: rpcTimeoutMillis });
    this.#lasting = {
      rpc,
      account: openAccount(config.privateKey),
      signers: new Signers(),
      config,
      forum,
      logger,
      logs: new LogSearch(rpc),
      highestNonces: new HighestNonces(),
      board: new JobBoard(),
      spending: new Spending(),
      funds: new Funds(clock),
      failed: { count: 0 },
    };
    this.#term = this.#openTerm(forum.lease());
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the current round and its steps have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#lasting.rpc.close();
    await this.#running;
    await this.#lasting.board.idle();
  }

  spending(): SpendingFigures & FundsFigures & { readonly alerts: number } {
    const { spending, funds } = this.#lasting;
    return { ...spending.figures(), ...funds.figures, alerts: this.#term.context.alerts.count };
  }

  status(): RelayerStatus {
    const { alerts, failed, forum } = this.#term.context;
    const { count, reason = this.#term.outage?.reason } = alerts;
    const rest = { pending: pendingOf(this.#term), failed: failed.count, leads: forum.lease() !== undefined };
    return reason === undefined ? { ok: true, ...rest } : { ok: count === 0, reason, ...rest };
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const millis = await this.#tick().catch((error: unknown) => {
        this.#reportOutage(describe(error), this.#clock());
        return BACKOFF_MILLIS_MAX;
      });
      await pause(millis, undefined, { signal }).catch(() => {});
    }
  }

  /** Runs a round if one is due, and returns the delay before the next tick. */
  async #tick(): Promise<Millis> {
    const { forum, logger } = this.#lasting;
    const lease = forum.lease();
    if (lease !== this.#term.lease) {
      this.#term = this.#openTerm(lease);
      this.#lasting.funds.reset();
      const role = lease === undefined ? 'standing by: another node relays' : 'leading: this node relays';
      logger.info({}, `relayer ${role}`);
    }
    if (lease === undefined) return IDLE_MILLIS;
    const term = this.#term;
    const startedAt = this.#clock();
    try {
      const chamberIds = await forum.unsettledChambers(CHAMBERS_PER_ROUND + term.memory.waiting);
      if (!this.#isDue(chamberIds)) return IDLE_MILLIS;
      const hasRun = await runRound(chamberIds, { ...term.context, lease }, term.memory);
      this.#endOutage();
      term.unread = 0;
      if (hasRun) return this.#plan();
    } catch (error) {
      if (this.#stopping.signal.aborted || forum.lease() !== lease) return 0;
      this.#reportOutage(describe(error), startedAt);
    }
    return Math.min(BACKOFF_MILLIS_MAX, BACKOFF_MILLIS * 2 ** term.failures++);
  }

  /** Another node may have led in between, so no state of the previous term is kept. */
  #openTerm(lease: string | undefined): LeaseTerm {
    const repeats = new RepeatedLog(this.#clock);
    return {
      lease,
      context: {
        ...this.#lasting,
        alerts: new Alerts(this.#lasting.logger, repeats),
        repeats,
        stopwatches: new Stopwatches(this.#clock),
        pauses: new Pauses(this.#clock),
        simulatedReverts: new SimulatedReverts(this.#clock),
        queue: new NonceQueue(),
        confirmedWith: new Map(),
        formerAttempts: new Map(),
      },
      memory: newMemory(),
      known: new Set(),
      nextAt: Number.NEGATIVE_INFINITY,
      delay: 0,
      failures: 0,
      outage: undefined,
      unread: 0,
    };
  }

  /** A round starts at once if there is a new chamber. */
  #isDue(chamberIds: readonly number[]): boolean {
    const term = this.#term;
    const isNew = chamberIds.some((chamberId) => !term.known.has(chamberId));
    term.known = new Set(chamberIds);
    const isDue = isNew || term.memory.isProgress || term.failures > 0 || this.#clock() >= term.nextAt;
    term.unread = isDue ? chamberIds.length : 0;
    return isDue;
  }

  /** Waits longer after each round without progress. */
  #plan(): Millis {
    const term = this.#term;
    const { isProgress } = term.memory;
    term.memory.isProgress = false;
    term.failures = 0;
    term.delay = Math.min(DELAY_MILLIS_MAX, (isProgress ? 0 : term.delay * 1.5) + FIRST_DELAY_MILLIS);
    const delay = isProgress || pendingOf(term) > 0 ? term.delay : HEARTBEAT_MILLIS;
    term.nextAt = this.#clock() + delay;
    return Math.min(IDLE_MILLIS, delay);
  }

  #reportOutage(reason: string, startedAt: Millis): void {
    const { alerts, logger, repeats } = this.#term.context;
    const { since } = this.#term.outage ?? { since: startedAt };
    this.#term.outage = { reason, since };
    repeats.report(OUTAGE, reason, (more) => logger.warn({ reason, ...more }, 'round failed, relayer retrying'));
    if (this.#clock() - since >= OUTAGE_MILLIS_MAX) alerts.raise(OUTAGE, reason);
  }

  #endOutage(): void {
    const { alerts, logger, repeats } = this.#term.context;
    if (this.#term.outage === undefined) return;
    this.#term.outage = undefined;
    alerts.clear(OUTAGE);
    repeats.end(OUTAGE, () => logger.info({}, 'relayer resumed'));
  }
}

/** The state that lasts as long as this node holds the lease. */
interface LeaseTerm {
  readonly lease: string | undefined;
  readonly context: RelayerContext;
  readonly memory: RoundMemory;
  /** The unsettled chambers at the last tick. */
  known: ReadonlySet<number>;
  nextAt: Millis;
  delay: Millis;
  failures: number;
  outage: { readonly reason: string; readonly since: Millis } | undefined;
  /** Unsettled chambers whose jobs no round has read yet. */
  unread: number;
}

function pendingOf({ memory, unread }: LeaseTerm): number {
  return Math.max(
    unread,
    [...memory.pending.values()].reduce((sum, count) => sum + count, 0),
  );
}

/** Messages of libraries may contain the RPC's URL, so only messages of this service are quoted. */
function describe(error: unknown): string {
  if (error instanceof RpcError || error instanceof ForumError) return error.message;
  if (error instanceof Error && 'code' in error) return `${error.name} ${String(error.code)}`;
  return error instanceof Error ? error.name : 'an unknown error';
}
