// Log lines about conditions that may last for days or come and go: a line is written at once when it is new, then at growing intervals.
import { LRUCache } from 'lru-cache';
import type { Millis } from '../vocabulary/values.ts';

const INTERVAL_MILLIS_MIN = 60_000;
const INTERVAL_MILLIS_MAX = 3_600_000;
/** A condition may change its reason. One whose reason is never the same twice is written at intervals, too. */
const REASONS_MAX = 8;
const CONDITIONS_MAX = 1_000;

/** Added to a line that is written again. */
export interface Repeats {
  /** How often the condition was reported, and over how many seconds. */
  readonly times?: number;
  readonly seconds?: number;
}

interface Condition {
  readonly since: Millis;
  readonly reasons: Set<string>;
  times: number;
  writtenAt: Millis;
  interval: Millis;
  /** A line about it was written, and none about its end. */
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

  /** The condition is over: calls `write` if a line about it was written. If it comes back, at most a minute passes until its next line. */
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
