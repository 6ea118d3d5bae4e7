// Passes turns for an agent that is done in a phase, until the phase ends or another member speaks. Then the agent decides again.
import type { TodoView } from '../../projections/todo.ts';
import { hasTurns, SPEECH } from '../../projections/turn.ts';
import type { Agent } from '../client/agent.ts';
import { ClientError } from '../client/error.ts';
import { pause } from '../reading/waiting.ts';
import { instantOf, type Phase } from '../vocabulary/values.ts';

/**
 * Without rounds, the agent holds each turn for a fraction of the remaining time. Otherwise members would pass in a tight loop until the
 * deadline.
 */
const HELD_FRACTION = 1 / 10;
const HELD_MILLIS_MIN = 2_000;
/** The agent passes at the latest this long before the turn expires. */
const SPARE_MILLIS = 1_000;

interface Passing {
  readonly phase: Phase;
  /** The last event that the agent has read. */
  after: number;
  /** Whether to pass the current turn; undefined before the decision begins. */
  decision: Promise<boolean> | undefined;
  readonly stop: AbortController;
}

export class AutoPass {
  readonly #agent: Agent;
  readonly #report: (line: string) => void;
  readonly #passing = new Map<number, Passing>();

  constructor(agent: Agent, report: (line: string) => void) {
    this.#agent = agent;
    this.#report = report;
  }

  /** Starts passing for an agent that is done in this phase and has read up to the event `after`. */
  begin(chamberId: number, phase: Phase, after: number): void {
    this.end(chamberId);
    if (!hasTurns(phase)) return;
    this.#passing.set(chamberId, { phase, after, decision: undefined, stop: new AbortController() });
  }

  end(chamberId: number): void {
    this.#passing.get(chamberId)?.stop.abort();
    this.#passing.delete(chamberId);
  }

  close(): void {
    for (const chamberId of this.#passing.keys()) this.end(chamberId);
  }

  /** Passes the current turn if the agent is done in this phase; returns whether it is. */
  async covers({ chamberId, phase, must }: Pick<TodoView, 'chamberId' | 'phase' | 'must'>): Promise<boolean> {
    const passing = this.#passing.get(chamberId);
    if (passing === undefined) return false;
    if (passing.phase !== phase) {
      this.end(chamberId);
      return false;
    }
    if (must !== 'pass') return true;
    passing.decision ??= this.#decide(chamberId, passing).catch((error: unknown) => {
      // The next call decides again.
      passing.decision = undefined;
      throw error;
    });
    return await passing.decision;
  }

  async #decide(chamberId: number, passing: Passing): Promise<boolean> {
    const { stop, after } = passing;
    for await (const { event } of this.#agent.forum.history(chamberId, { after, signal: stop.signal })) {
      if (SPEECH.has(event.type) && event.did !== this.#agent.did) {
        this.end(chamberId);
        return false;
      }
      passing.after = event.eventId;
    }
    this.#pass(chamberId, passing).catch((error: Error) => {
      if (stop.signal.aborted) return;
      this.end(chamberId);
      this.#report(`not passed in chamber ${chamberId}: ${error.message}`);
    });
    return true;
  }

  async #pass(chamberId: number, passing: Passing): Promise<void> {
    const { signal } = passing.stop;
    await this.#hold(chamberId, signal);
    signal.throwIfAborted();
    try {
      const { eventId } = await this.#agent.pass(chamberId, { signal });
      passing.after = eventId;
    } catch (error) {
      if (!isTurnOver(error)) throw error;
    }
    passing.decision = undefined;
  }

  async #hold(chamberId: number, signal: AbortSignal): Promise<void> {
    const { rounds, now, phaseEndsAt, turnEndsAt } = await this.#agent.forum.chamber(chamberId, { signal });
    if (rounds !== null || phaseEndsAt === null) return;
    const until = (end: string) => instantOf(end) - instantOf(now);
    const held = Math.max(HELD_MILLIS_MIN, until(phaseEndsAt) * HELD_FRACTION);
    await pause(Math.max(0, Math.min(held, until(turnEndsAt ?? phaseEndsAt) - SPARE_MILLIS)), signal);
  }
}

export function isTurnOver(error: unknown): boolean {
  return error instanceof ClientError && (error.code === 'FORUM_ERR_TURN' || error.code === 'FORUM_ERR_PHASE');
}
