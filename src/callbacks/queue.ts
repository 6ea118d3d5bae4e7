// A bounded queue of duties to deliver, served fairly across agents. An agent is proven once its last deliveries have succeeded in time.
// Half of the connections are reserved for proven agents, and agents that never failed precede the others, so that receivers that hang
// delay only each other.
import type { Millis } from '../vocabulary/values.ts';
import type { RequestKind } from './address-limits.ts';
import type { FoundDuty } from './duty-finder.ts';

export interface QueuedDuty extends FoundDuty {
  /** The webhook-id. */
  readonly id: string;
  /** On the clock of performance.now(). */
  readonly foundAt: Millis;
  tries: number;
  /** On the clock of performance.now(). */
  nextAt: Millis;
  /** The key of the address if it was busy at the last attempt. */
  busyAddress: string | undefined;
  /** The kind of the attempt that is running. */
  kind: Exclude<RequestKind, 'challenge'>;
}

interface AgentQueue {
  readonly duties: Map<string, QueuedDuty>;
  isRunning: boolean;
  /** The number of successes still needed before the agent is proven. */
  unproven: number;
  /** On the clock of performance.now(). An agent whose todo list takes longer to read rests longer. */
  restsUntil: Millis;
}

export interface AttemptEnd {
  /** Whether the receiver responded with success, and in time. */
  readonly isSuccess?: boolean;
  readonly restsUntil?: Millis;
}

interface QueueOptions {
  readonly dutiesMax: number;
  readonly runningMax: number;
}

/** Prevents an agent in many chambers with a hanging receiver from filling the queue. */
const DUTIES_PER_AGENT_MAX = 100;
const UNPROVEN_NEW = 1;
/** One success is not enough, because a receiver can hang every other time. */
const UNPROVEN_FAILED = 10;
/** The number of remembered deliveries. A forgotten duty that is still open is delivered again. */
const DELIVERED_MAX = 100_000;

export class DutyQueue {
  readonly #options: QueueOptions;
  /** By DID, longest waiting first. */
  readonly #agents = new Map<string, AgentQueue>();
  readonly #delivered = new Set<string>();
  #size = 0;
  #running = 0;
  #unprovenRunning = 0;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the longest time that a duty has waited for its first attempt. */
  oldestWait(now: Millis): Millis {
    let oldest = now;
    for (const { duties } of this.#agents.values())
      for (const { tries, foundAt } of duties.values()) if (tries === 0) oldest = Math.min(oldest, foundAt);
    return now - oldest;
  }

  /** Returns true if the duty is queued or was delivered; false if the queue is full or has too many duties of the agent. */
  add(duty: FoundDuty, id: string, now: Millis): boolean {
    if (this.#delivered.has(id)) return true;
    const agent = this.#agents.get(duty.did) ?? newAgent();
    if (agent.duties.has(id)) return true;
    if (this.#size >= this.#options.dutiesMax || agent.duties.size >= DUTIES_PER_AGENT_MAX) return false;
    this.#agents.set(duty.did, agent);
    agent.duties.set(id, {
      ...duty,
      id,
      foundAt: now,
      tries: 0,
      nextAt: now,
      busyAddress: undefined,
      kind: 'unproven',
    });
    this.#size++;
    return true;
  }

  /** Returns up to `max` duties to attempt now, at most one per agent, and one per address that was busy. Call `done` for each. */
  take(max: number, now: Millis, isBusy: (address: string, kind: RequestKind) => boolean): readonly QueuedDuty[] {
    const taken: QueuedDuty[] = [];
    const awaited = new Set<string>();
    const isTaken = (address: string, kind: RequestKind) => awaited.has(address) || isBusy(address, kind);
    for (const hasFailed of [false, true]) {
      for (const agent of this.#agents.values()) {
        if (taken.length >= max || this.#running >= this.#options.runningMax) return taken;
        if (agent.duties.size === 0 || agent.unproven > UNPROVEN_NEW !== hasFailed) continue;
        const duty = this.#nextOf(agent, now, isTaken);
        if (duty === undefined) continue;
        if (duty.busyAddress !== undefined) awaited.add(duty.busyAddress);
        agent.isRunning = true;
        this.#running++;
        if (duty.kind === 'unproven') this.#unprovenRunning++;
        taken.push(duty);
      }
    }
    return taken;
  }

  #nextOf(
    agent: AgentQueue,
    now: Millis,
    isBusy: (address: string, kind: RequestKind) => boolean,
  ): QueuedDuty | undefined {
    if (agent.isRunning || agent.restsUntil > now) return undefined;
    const kind = agent.unproven > 0 ? 'unproven' : 'proven';
    if (kind === 'unproven' && this.#unprovenRunning >= this.#options.runningMax / 2) return undefined;
    for (const duty of agent.duties.values()) {
      if (duty.nextAt > now || (duty.busyAddress !== undefined && isBusy(duty.busyAddress, kind))) continue;
      duty.kind = kind;
      return duty;
    }
    return undefined;
  }

  /** Call when an attempt has ended. `isSuccess` is undefined if nothing was sent: then the agent keeps its place. */
  done({ did, kind }: QueuedDuty, { isSuccess, restsUntil }: AttemptEnd): void {
    const agent = this.#agents.get(did);
    if (agent === undefined) return;
    if (agent.isRunning) {
      this.#running--;
      if (kind === 'unproven') this.#unprovenRunning--;
    }
    agent.isRunning = false;
    agent.restsUntil = restsUntil ?? agent.restsUntil;
    if (isSuccess !== undefined) {
      agent.unproven = isSuccess ? Math.max(0, agent.unproven - 1) : UNPROVEN_FAILED;
      this.#agents.delete(did);
      this.#agents.set(did, agent);
    }
    // The results of its deliveries are remembered even when it has no duties, within the bound.
    const isKept = agent.unproven !== UNPROVEN_NEW && this.#agents.size <= this.#options.dutiesMax;
    if (agent.duties.size === 0 && !isKept) this.#agents.delete(did);
  }

  remove({ did, id }: QueuedDuty, isDelivered: boolean): void {
    const isRemoved = this.#agents.get(did)?.duties.delete(id);
    if (isRemoved) this.#size--;
    if (!isDelivered) return;
    this.#delivered.add(id);
    const [oldest] = this.#delivered;
    if (this.#delivered.size > DELIVERED_MAX && oldest !== undefined) this.#delivered.delete(oldest);
  }
}

function newAgent(): AgentQueue {
  return { duties: new Map(), isRunning: false, unproven: UNPROVEN_NEW, restsUntil: 0 };
}
