// A bounded queue of duties to deliver, served fairly by agent. Half of the connections are reserved for agents whose last attempt
// succeeded, so that hanging receivers delay only each other.
import type { Millis } from '../vocabulary/values.ts';
import type { FoundDuty } from './duty-finder.ts';

export interface QueuedDuty extends FoundDuty {
  /** The webhook-id. */
  readonly id: string;
  /** By performance.now(). */
  readonly foundAt: Millis;
  tries: number;
  /** By performance.now(). */
  nextAt: Millis;
  /** The key of the address if it was busy at the last attempt. */
  busyAddress: string | undefined;
}

interface AgentQueue {
  readonly duties: Map<string, QueuedDuty>;
  isRunning: boolean;
  isFailing: boolean;
  /** By performance.now(). An agent whose todo list takes longer to read rests longer. */
  restsUntil: Millis;
}

interface QueueOptions {
  readonly dutiesMax: number;
  readonly runningMax: number;
}

/** Prevents an agent in many chambers with a hanging receiver from filling the queue. */
const DUTIES_PER_AGENT_MAX = 100;
/** The number of remembered deliveries. A forgotten duty that is still open is delivered again. */
const DELIVERED_MAX = 100_000;

export class DutyQueue {
  readonly #options: QueueOptions;
  /** By DID, longest waiting first. */
  readonly #agents = new Map<string, AgentQueue>();
  readonly #delivered = new Set<string>();
  #size = 0;
  #running = 0;
  #failingRunning = 0;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  get running(): number {
    return this.#running;
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
    agent.duties.set(id, { ...duty, id, foundAt: now, tries: 0, nextAt: now, busyAddress: undefined });
    this.#size++;
    return true;
  }

  /** Returns up to `max` duties to attempt now, at most one per agent. Call `done` for each. */
  take(max: number, now: Millis, isBusy: (address: string) => boolean): readonly QueuedDuty[] {
    const taken: QueuedDuty[] = [];
    for (const agent of this.#agents.values()) {
      if (taken.length >= max || this.#running >= this.#options.runningMax) break;
      const duty = this.#nextOf(agent, now, isBusy);
      if (duty === undefined) continue;
      agent.isRunning = true;
      this.#running++;
      if (agent.isFailing) this.#failingRunning++;
      taken.push(duty);
    }
    for (const { did } of taken) this.#toEnd(did);
    return taken;
  }

  #nextOf(agent: AgentQueue, now: Millis, isBusy: (address: string) => boolean): QueuedDuty | undefined {
    if (agent.isRunning || agent.restsUntil > now) return undefined;
    if (agent.isFailing && this.#failingRunning >= this.#options.runningMax / 2) return undefined;
    for (const duty of agent.duties.values()) {
      if (duty.nextAt <= now && !(duty.busyAddress !== undefined && isBusy(duty.busyAddress))) return duty;
    }
    return undefined;
  }

  #toEnd(did: string): void {
    const agent = this.#agents.get(did);
    if (agent === undefined) return;
    this.#agents.delete(did);
    this.#agents.set(did, agent);
  }

  /** Call when an attempt has ended. */
  done({ did }: QueuedDuty, { isFailing, restsUntil }: Partial<Pick<AgentQueue, 'isFailing' | 'restsUntil'>>): void {
    const agent = this.#agents.get(did);
    if (agent === undefined) return;
    if (agent.isRunning) {
      this.#running--;
      if (agent.isFailing) this.#failingRunning--;
    }
    agent.isRunning = false;
    agent.isFailing = isFailing ?? agent.isFailing;
    agent.restsUntil = restsUntil ?? agent.restsUntil;
    // A failing agent is remembered even without duties, within the bound.
    const isKept = agent.isFailing && this.#agents.size <= this.#options.dutiesMax;
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
  return { duties: new Map(), isRunning: false, isFailing: false, restsUntil: 0 };
}
