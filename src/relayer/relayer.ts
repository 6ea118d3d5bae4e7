// The relayer: brings the root of every closed chamber, then its graduates, onto the chain, each exactly once, through
// crashes and faults (README, Relayer). This is its loop; what a round does is in round.ts.
import type { Millis } from '../vocabulary/values.ts';
import type { Logger, RelayerConfig, RelayerForum } from './port.ts';
import { findWork, type Memory, playRound, type RoundResult } from './round.ts';
import { openRpc, RpcError } from './rpc.ts';
import type { Means } from './scene.ts';
import { openAccount } from './signer.ts';
import { Troubles } from './trouble.ts';
import { Waits } from './waits.ts';

export interface RelayerStatus {
  /** Whether the relayer works without help; an RPC that is away may come back and is no reason against it. */
  readonly ok: boolean;
  /** What holds it up, in a sentence without secrets. */
  readonly reason?: string;
  /** Transactions to be sent or awaited in chambers that are closed. */
  readonly pending: number;
  /** Deployments that failed since the start. */
  readonly failed: number;
}

export interface RelayerOptions {
  readonly config: RelayerConfig;
  readonly forum: RelayerForum;
  readonly logger: Logger;
  /** Milliseconds, of any origin; measures how long a transaction is stuck. */
  readonly clock?: () => Millis;
  readonly rpcTimeoutMillis?: Millis;
}

const IDLE_MILLIS = 250;
const FIRST_WAIT_MILLIS = 20;
const WAIT_MILLIS_MAX = 2_000;
const BACKOFF_MILLIS = 100;
const BACKOFF_MILLIS_MAX = 5_000;
/** How often the chain is looked at when there is nothing to do: for reorganisations, and for the status. */
const HEARTBEAT_MILLIS = 5_000;
/** How often a trouble that lasts is logged again. */
const TELL_MILLIS = 60_000;

export class Relayer {
  readonly #means: Means;
  readonly #clock: () => Millis;
  readonly #memory: Memory = { settled: undefined, unmined: [], chainId: undefined, trustedHead: undefined };
  #running: Promise<void> | undefined;
  #isStopping = false;
  #wake: () => void = () => {};
  #known: ReadonlySet<number> = new Set();
  #nextAt: Millis = Number.NEGATIVE_INFINITY;
  #waited = 0;
  #failures = 0;
  #away: string | undefined;
  #awayToldAt: Millis = 0;
  #pending = 0;
  #failed = 0;

  constructor({ config, forum, logger, clock = () => performance.now(), rpcTimeoutMillis }: RelayerOptions) {
    this.#clock = clock;
    this.#means = {
      rpc: openRpc(config.rpcUrl, rpcTimeoutMillis),
      account: openAccount(config.privateKey),
      config,
      forum: this.#counting(forum),
      logger,
      troubles: new Troubles(logger, clock),
      waits: new Waits(clock),
    };
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the round that was under way has ended; whatever it left is found again by the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#means.rpc.close();
    this.#wake();
    await this.#running;
  }

  /** Looks for work now rather than in a moment. */
  wake(): void {
    if (this.#failures === 0) this.#wake();
  }

  status(): RelayerStatus {
    const { count, reason } = this.#means.troubles;
    const held = reason ?? this.#away;
    const counts = { pending: this.#pending, failed: this.#failed };
    return held === undefined ? { ok: true, ...counts } : { ok: count === 0, reason: held, ...counts };
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) await this.#pause(await this.#round());
  }

  /** Plays a round where one is due and says after how many milliseconds to look again. */
  async #round(): Promise<Millis> {
    try {
      const chamberIds = await findWork(this.#means);
      if (!this.#isDue(chamberIds)) return IDLE_MILLIS;
      const result = await playRound(chamberIds, this.#means, this.#memory);
      this.#pending = result.pending;
      if (result.isHalted) return this.#backoff();
      this.#recover();
      return this.#plan(result);
    } catch (error) {
      if (this.#isStopping) return 0;
      this.#tellAway(describe(error));
      return this.#backoff();
    }
  }

  /** New work is begun at once; old work and the heartbeat wait for their time. */
  #isDue(chamberIds: readonly number[]): boolean {
    const isNew = chamberIds.some((chamberId) => !this.#known.has(chamberId));
    this.#known = new Set(chamberIds);
    this.#pending = Math.max(this.#pending, chamberIds.length);
    return isNew || this.#failures > 0 || this.#clock() >= this.#nextAt;
  }

  /** Waits longer each time that a round has moved nothing. */
  #plan({ isProgress, pending }: RoundResult): Millis {
    if (isProgress) this.#waited = 0;
    this.#waited = Math.min(WAIT_MILLIS_MAX, this.#waited * 1.5 + FIRST_WAIT_MILLIS);
    const delay = isProgress || pending > 0 ? this.#waited : HEARTBEAT_MILLIS;
    this.#nextAt = this.#clock() + delay;
    return Math.min(IDLE_MILLIS, delay);
  }

  #recover(): void {
    if (this.#away !== undefined) this.#means.logger.info({}, 'the relayer goes on');
    this.#away = undefined;
    this.#failures = 0;
  }

  #tellAway(reason: string): void {
    const now = this.#clock();
    const isTold = reason === this.#away && now - this.#awayToldAt < TELL_MILLIS;
    this.#away = reason;
    if (isTold) return;
    this.#awayToldAt = now;
    this.#means.logger.warn({ reason }, 'the relayer tries again');
  }

  #backoff(): Millis {
    return Math.min(BACKOFF_MILLIS_MAX, BACKOFF_MILLIS * 2 ** this.#failures++);
  }

  async #pause(millis: Millis): Promise<void> {
    if (this.#isStopping) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, millis);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }

  #counting(forum: RelayerForum): RelayerForum {
    return {
      now: () => forum.now(),
      unsettledChambers: (limit) => forum.unsettledChambers(limit),
      settledChambers: (limit) => forum.settledChambers(limit),
      chamber: (chamberId) => forum.chamber(chamberId),
      record: async (chamberId, fact) => {
        await forum.record(chamberId, fact);
        if (fact.type === 'idea.deploy_failed') this.#failed++;
      },
    };
  }
}

/** Errors of libraries may hold the RPC's URL, so only our own are quoted. */
function describe(error: unknown): string {
  if (error instanceof RpcError) return error.message;
  if (error instanceof Error && 'code' in error) return `${error.name} ${String(error.code)}`;
  return error instanceof Error ? error.name : 'an unknown error';
}
