// Logs conditions that may last for days or come and go: a new condition is logged at once, and then at growing intervals.
import { LRUCache } from 'lru-cache';
import type { Millis } from '../vocabulary/values.ts';

const INTERVAL_MILLIS_MIN = 60_000;
const INTERVAL_MILLIS_MAX = 3_600_000;
/** Up to this number, a new reason is logged at once. Further reasons are logged at intervals, because a reason may change every time. */
const REASONS_MAX = 8;
const CONDITIONS_MAX = 1_000;

/** Added to repeated lines. */
export interface Repeats {
  /** The number of reports since the condition began, and the seconds since then. */
  readonly times?: number;
  readonly seconds?: number;
}

interface Condition {
  readonly since: Millis;
  readonly reasons: Set<string>;
  times: number;
  writtenAt: Millis;
  interval: Millis;
  /** Whether a line about the condition was written, but none about its end. */
  isOpen: boolean;
  isOver: boolean;
}

export class RepeatedLog {
  readonly #clock: () => Millis;
  readonly #conditions = new LRUCache<string, Condition>({ max: CONDITIONS_MAX });

  constructor(clock: () => Millis = () => performance.now()) {
    this.#clock = clock;
  }

  /** Calls `write` if a line about the condition is due. */
  report(name: string, reason: string, write: (repeats: Repeats) => void): void {
    const now = this.#clock();
    const known = this.#conditions.get(name);
    const isNew = known === undefined || (known.isOver && now - known.writtenAt >= INTERVAL_MILLIS_MIN);
    const condition = isNew ? openCondition(now) : known;
    if (isNew) this.#conditions.set(name, condition);
    condition.times++;
    condition.isOver = false;
    const { reasons, writtenAt, interval, times, since } = condition;
    const isOtherReason = !reasons.has(reason) && reasons.size < REASONS_MAX;
    if (!isOtherReason && now - writtenAt < interval) return;
    if (isOtherReason) reasons.add(reason);
    else condition.interval = Math.min(2 * interval, INTERVAL_MILLIS_MAX);
    condition.writtenAt = now;
    condition.isOpen = true;
    write(isNew ? {} : { times, seconds: Math.round((now - since) / 1000) });
  }

  /** Calls `write` if a line about the condition was written. If the condition returns, its next line follows within a minute. */
  end(name: string, write: () => void = () => {}): void {
    const condition = this.#conditions.get(name);
    if (condition === undefined) return;
    const { isOpen } = condition;
    condition.isOpen = false;
    condition.isOver = true;
    condition.interval = INTERVAL_MILLIS_MIN;
    if (isOpen) write();
  }
}

function openCondition(now: Millis): Condition {
  return {
    since: now,
    reasons: new Set(),
    times: 0,
    writtenAt: now,
    interval: INTERVAL_MILLIS_MIN,
    isOpen: false,
    isOver: false,
  };
}
