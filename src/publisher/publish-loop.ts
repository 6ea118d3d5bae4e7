// Runs the publisher: every second, a round publishes a checkpoint and updates this node's copy.
import type { Logger } from 'pino';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { EventLog } from '../log/log.ts';
import type { Lease } from '../log/store.ts';
import { detach } from '../process/detach.ts';
import { type PublishedHistory, SecondHistory } from './published-history.ts';
import { PUBLISH_INTERVAL_MS, type PublisherOptions, publishOnce, TreeDamaged } from './publisher.ts';
import type { Witnesses } from './witnesses.ts';

interface PublishLoopOptions extends Omit<PublisherOptions, 'lease'> {
  /** Called only when the loop starts, so that a service that fails to start does not take the lease from another node. */
  readonly claimLease: () => Lease;
  readonly log: Pick<EventLog, 'lastPlace'>;
  readonly history: PublishedHistory;
  readonly logger: Logger;
  readonly witnesses: Witnesses;
}

export class PublishLoop {
  readonly #options: PublishLoopOptions;
  readonly #problems = new RepeatedLog();
  #lease: Lease | undefined;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isStopped = false;
  #size = 0;
  /** The time of the latest line count that the checkpoint fully covers. */
  #coveredAt = performance.now();
  #isTreeDamaged = false;
  readonly #failing = new Set<keyof typeof PROBLEMS>();

  constructor(options: PublishLoopOptions) {
    this.#options = options;
  }

  /** Returns the state as of the last round; only the lag keeps growing between rounds. */
  state() {
    const { witnesses, history } = this.#options;
    return {
      size: this.#size,
      lagSeconds: (performance.now() - this.#coveredAt) / 1_000,
      isTreeDamaged: this.#isTreeDamaged,
      hasSecondHistory: history.problem !== undefined,
      ok: this.#failing.size === 0,
      leads: this.#lease?.token !== undefined,
      ...witnesses.state(),
    };
  }

  start(): void {
    this.#lease ??= this.#options.claimLease();
    const next = () => {
      if (!this.#isStopped) this.start();
    };
    this.#timer = setTimeout(() => {
      this.#round = this.round().finally(next);
      detach(this.#round);
    }, PUBLISH_INTERVAL_MS).unref();
  }

  /** Logs errors; the next round retries. */
  async round(): Promise<void> {
    const countedAt = performance.now();
    let lines = Number.POSITIVE_INFINITY;
    const { log, tree, history, witnesses } = this.#options;
    this.#lease ??= this.#options.claimLease();
    const lease = this.#lease;
    await this.#attempt('publish', async () => {
      lines = await log.lastPlace();
      await tree.onOneServer(async (pinned) => {
        await history.prove(pinned);
        await publishOnce({ ...this.#options, lease, tree: pinned });
      });
    });
    if (history.problem !== undefined) return;
    await this.#attempt('copy', async () => {
      await history.keep(tree);
      const checkpoint = await history.newest(tree);
      this.#size = checkpoint?.size ?? 0;
      if (this.#size >= lines) this.#coveredAt = countedAt;
      if (checkpoint !== undefined && lease.token !== undefined) witnesses.ask(checkpoint);
    });
  }

  async #attempt(name: keyof typeof PROBLEMS, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failing.delete(name);
      if (name === 'publish') this.#isTreeDamaged = false;
      this.#problems.end(name, () => this.#options.logger.info(PROBLEMS[name].over));
    } catch (error) {
      this.#failing.add(name);
      if (error instanceof TreeDamaged) this.#isTreeDamaged = true;
      const { message } = error as Error;
      this.#problems.report(name, message, (repeats) => {
        const level = error instanceof TreeDamaged || error instanceof SecondHistory ? 'error' : 'warn';
        this.#options.logger[level]({ reason: message, ...repeats }, PROBLEMS[name].line);
      });
    }
  }

  /** Resolves after the current round has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#options.witnesses.stop();
    await this.#round;
    await this.#lease?.release();
  }
}

const PROBLEMS = {
  publish: { line: 'no checkpoint can be published', over: 'checkpoints are published again' },
  copy: { line: 'the copy of the checkpoint cannot be written', over: 'the copy of the checkpoint is written again' },
} as const;
