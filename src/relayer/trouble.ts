// What keeps the relayer from its work and needs a human: named in the service's log and in /health until it is over.
import type { Millis } from '../vocabulary/values.ts';
import type { Logger } from './port.ts';

const REPEAT_MILLIS = 60_000;

interface Entry {
  readonly reason: string;
  readonly loggedAt: Millis;
}

export class Troubles {
  readonly #logger: Logger;
  readonly #clock: () => Millis;
  readonly #entries = new Map<string, Entry>();

  constructor(logger: Logger, clock: () => Millis) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Logged at once when new or changed, and again each minute that it lasts. */
  raise(subject: string, reason: string): void {
    const before = this.#entries.get(subject);
    const now = this.#clock();
    if (before?.reason === reason && now - before.loggedAt < REPEAT_MILLIS) return;
    this.#entries.set(subject, { reason, loggedAt: now });
    this.#logger.error({ subject, reason }, 'the relayer needs help');
  }

  clear(subject: string): void {
    if (this.#entries.delete(subject)) this.#logger.info({ subject }, 'the relayer needs no more help');
  }

  get count(): number {
    return this.#entries.size;
  }

  /** The oldest, in a sentence. */
  get reason(): string | undefined {
    const [first] = this.#entries;
    return first && `${first[0]}: ${first[1].reason}`;
  }
}
