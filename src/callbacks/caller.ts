// Runs the deliveries of a process. Only the node that holds the lease delivers. A node that dies or freezes loses the lease, and the next
// holder finds the open duties again, so a duty may be delivered twice, with the same id.
import type { Logger } from 'pino';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { Lease } from '../log/store.ts';
import { repeat } from '../process/detach.ts';
import { Deliveries, type DeliveriesOptions } from './deliveries.ts';
import { DutyFinder } from './duty-finder.ts';

const FIND_INTERVAL_MS = 1_000;
const PUMP_INTERVAL_MS = 100;
const WRITE_INTERVAL_MS = 2_000;

export interface CallerOptions extends Omit<DeliveriesOptions, 'leads' | 'onError' | 'service'> {
  readonly isOn: boolean;
  readonly claimLease: () => Lease;
  readonly logger: Logger;
}

export class CallbackCaller {
  readonly #options: CallerOptions;
  readonly #problems = new RepeatedLog();
  readonly #finder: DutyFinder;
  #deliveries: Deliveries | undefined;
  #service = '';
  #lease: Lease | undefined;
  /** The lease token under which the current duties were found. */
  #token: string | undefined;
  #stops: readonly (() => void)[] = [];
  /** Totals from earlier lease terms. */
  #before = { delivered: 0, failedTries: 0 };

  constructor(options: CallerOptions) {
    this.#options = options;
    this.#finder = new DutyFinder({ forum: options.forum, onDuty: (duty) => this.#deliveries?.add(duty) ?? false });
  }

  state() {
    const { delivered = 0, failedTries = 0, queued = 0, oldestSeconds = 0 } = this.#deliveries?.state() ?? {};
    return {
      delivered: this.#before.delivered + delivered,
      failedTries: this.#before.failedTries + failedTries,
      queued,
      oldestSeconds,
      leads: this.#options.isOn ? this.#leads() : undefined,
    };
  }

  /** `service` is the service's base URL. */
  start(service: string): void {
    if (!this.#options.isOn) return;
    this.#service = service;
    this.#lease ??= this.#options.claimLease();
    this.#stops = [
      repeat(() => this.#attempt('findDuties', () => this.findDuties()), FIND_INTERVAL_MS),
      repeat(async () => this.#deliveries?.pump(), PUMP_INTERVAL_MS),
      repeat(() => this.#attempt('write', () => this.#options.results.write()), WRITE_INTERVAL_MS),
    ];
  }

  /** Call when an agent has set a callback through this node, so that the next search finds its duties at once. */
  searchSoon(): void {
    this.#finder.searchSoon();
  }

  /** Finds duties that have become due, and forgets all duties if the lease has changed. */
  async findDuties(): Promise<void> {
    const token = this.#lease?.token;
    if (token !== this.#token) this.#begin(token);
    if (token !== undefined) await this.#finder.round();
  }

  #begin(token: string | undefined): void {
    const { delivered, failedTries } = this.state();
    this.#before = { delivered, failedTries };
    this.#token = token;
    this.#finder.forget();
    const leads = () => this.#token === token && this.#leads();
    const onError = (error: unknown) => this.#report('deliver', error);
    this.#deliveries =
      token === undefined ? undefined : new Deliveries({ ...this.#options, service: this.#service, leads, onError });
  }

  #leads(): boolean {
    return this.#token !== undefined && this.#lease?.token === this.#token;
  }

  async #attempt(name: keyof typeof PROBLEMS, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#problems.end(name);
    } catch (error) {
      this.#report(name, error);
    }
  }

  #report(name: keyof typeof PROBLEMS, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#problems.report(name, reason, (repeats) => this.#options.logger.warn({ reason, ...repeats }, PROBLEMS[name]));
  }

  /** Aborts pending requests; the next start or node sends them again. */
  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#options.poster.close();
    await this.#deliveries?.settled();
    await this.#attempt('write', () => this.#options.results.write());
    this.#finder.forget();
    await this.#lease?.release();
  }
}

const PROBLEMS = {
  findDuties: 'the duties of agents with callbacks cannot be read',
  deliver: 'a callback cannot be prepared',
  write: 'the results of callbacks cannot be written',
} as const;
