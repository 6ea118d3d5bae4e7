// Makes acting tools safe to repeat, because hosts cancel calls and models repeat them. Why this is correct:
//
// - A signed request is on disk before it is sent, and the service accepts it only once. So sending the same request again, from this
//   process or a later one, resolves a call with an unknown outcome.
// - An equal call returns the earlier result until a new turn or phase gives the call a different meaning. It returns the result even then
//   if the caller may not have received it, because the call was cancelled or the process ended.
// - If a call equals the previous call of any tool, it returns that call's result: a new turn may have begun, but the caller has not
//   looked.
// - If a call is impossible now and equals a successful call in this chamber, it returns that call's result: the result may have been lost,
//   and the move itself may have ended the turn or the phase.
// - A call never fails because of bookkeeping after its move.
// - Equal concurrent calls share one run; other processes with the same key wait for the lock.
import { hash, randomUUID } from 'node:crypto';
import { hasTurns } from '../../projections/turn.ts';
import type { ChamberView } from '../../projections/views.ts';
import type { Agent } from '../client/agent.ts';
import type { SendOptions } from '../client/call.ts';
import { ClientError } from '../client/error.ts';
import { canonicalJson } from '../vocabulary/json.ts';
import type { Phase } from '../vocabulary/values.ts';
import type { Allowance } from './allowance.ts';
import type { CallFiles, StoredCall } from './call-files.ts';

/** Less than the 25 to 60 seconds after which hosts cancel calls. */
const CALL_MILLIS_MAX = 20_000;
/** An equal call that creates a chamber counts as a repetition within this time. */
const CREATION_MILLIS = 600_000;
/** If a result was returned this long ago and the call was not cancelled, it counts as received. */
export const RECEIVED_AFTER_MILLIS = 1_000;

export interface ActingCall {
  readonly tool: string;
  /** Null for a call that creates a chamber. */
  readonly chamberId: number | null;
  readonly args: object;
  /** Whether to make the call even if an equal call succeeded. */
  readonly isAgain: boolean;
  /** Whether the call repeats the previous call of any tool. */
  readonly isRepetition: boolean;
  /** Aborts when the caller cancels the call. */
  readonly signal: AbortSignal;
}

/** Sends one command of a call, under a unique name. A resumed call does not repeat the commands that succeeded. */
export type Step = <Result extends object>(
  name: string,
  send: (options: SendOptions) => Promise<Result>,
) => Promise<Result>;

type Repeatable<Result> = Result & { readonly repeated?: true };

interface ActingOptions {
  readonly files: CallFiles;
  readonly allowance: Allowance;
  readonly callMillisMax?: number | undefined;
  readonly report: (line: string) => void;
}

interface Run {
  readonly result: Promise<object>;
  readonly signals: Set<AbortSignal>;
}

export class ActingCalls {
  readonly #agent: Agent;
  readonly #files: CallFiles;
  readonly #allowance: Allowance;
  readonly #callMillisMax: number;
  readonly #report: (line: string) => void;
  readonly #running = new Map<string, Run>();
  /** Calls whose results this process has returned to a caller that did not cancel them. */
  readonly #returned = new Set<string>();

  constructor(agent: Agent, { files, allowance, callMillisMax = CALL_MILLIS_MAX, report }: ActingOptions) {
    this.#agent = agent;
    this.#files = files;
    this.#allowance = allowance;
    this.#callMillisMax = callMillisMax;
    this.#report = report;
  }

  /**
   * Returns the result of the call, from this run or an earlier one; throws if the service did not accept the call. `act` gets the phase of
   * the call's first attempt.
   */
  async run<Result extends object>(
    acting: ActingCall,
    act: (step: Step, phase: Phase | null) => Promise<Result>,
  ): Promise<Repeatable<Result>> {
    const key = this.#keyOf(acting);
    const running = this.#running.get(key);
    if (running !== undefined) {
      running.signals.add(acting.signal);
      return repeated<Result>(await running.result);
    }
    const signals = new Set([acting.signal]);
    const result = this.#runOnce({ ...acting, key, signals }, act);
    this.#running.set(key, { result, signals });
    try {
      return (await result) as Repeatable<Result>;
    } finally {
      this.#running.delete(key);
    }
  }

  #keyOf({ tool, chamberId, args }: ActingCall): string {
    const call = [this.#agent.forum.service.baseUrl, tool, chamberId, args];
    return hash('sha256', canonicalJson(call), 'base64url');
  }

  async #runOnce<Result extends object>(
    call: ActingCall & { readonly key: string; readonly signals: ReadonlySet<AbortSignal> },
    act: (step: Step, phase: Phase | null) => Promise<Result>,
  ): Promise<object> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(unknownOutcome(this.#callMillisMax)), this.#callMillisMax);
    try {
      return await this.#files.locked(limit.signal, async () => {
        const calls = await this.#files.load(call.chamberId);
        const found = await this.#find(calls, call, limit.signal);
        if ('earlier' in found) return repeated(this.#return(found.earlier, call));
        const { open } = found;
        const save = () => this.#files.save(call.chamberId, calls);
        const saveOrReport = () => save().catch((error: Error) => this.#report(error.message));
        if (!calls.includes(open)) calls.push(open);
        try {
          const made: object = await act(this.#stepper(open, save, limit.signal), open.phase);
          open.result = { ...made };
        } catch (error) {
          const isUnknown = limit.signal.aborted || (error instanceof ClientError && error.retryable);
          const mayBeMade = open.steps.some(({ result }) => isUnknown || result !== undefined);
          if (!mayBeMade) calls.splice(calls.indexOf(open), 1);
          await saveOrReport();
          const earlier = mayBeMade ? undefined : earlierSuccess(calls, call, error);
          if (earlier === undefined) throw error;
          return repeated(this.#return(earlier, call));
        }
        await saveOrReport();
        this.#allowance.count(call.tool);
        return this.#return(open, call);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Finds an earlier equal call whose result can be returned, or the call to make or resume. */
  async #find(
    calls: readonly StoredCall[],
    { tool, key, isAgain, isRepetition, chamberId, signal }: ActingCall & { readonly key: string },
    limit: AbortSignal,
  ): Promise<{ readonly earlier: StoredCall } | { readonly open: StoredCall }> {
    const last = calls.findLast((each) => each.key === key && each.isAgain === isAgain);
    if (last !== undefined && last.result === undefined) return { open: last };
    if (last !== undefined && (isRepetition || !this.#isReceived(last))) return { earlier: last };
    signal.throwIfAborted();
    const chamber = chamberId === null ? null : await this.#agent.forum.chamber(chamberId, { signal: limit });
    const equal = isAgain ? undefined : calls.findLast((each) => each.key === key && each.result !== undefined);
    if (equal !== undefined && (await this.#hasSameMeaning(equal, chamber, limit))) return { earlier: equal };
    this.#allowance.require(tool);
    const { phase = null, turnEndsAt = null } = chamber ?? {};
    const now = Date.now();
    return {
      open: { id: randomUUID(), key, isAgain, at: now, phase, turnEndsAt, steps: [], isReceived: false },
    };
  }

  #isReceived({ id, isReceived }: StoredCall): boolean {
    return isReceived || this.#returned.has(id);
  }

  /** Returns whether an equal call still has the same meaning: no phase and no turn of this agent has begun since. */
  async #hasSameMeaning(call: StoredCall, chamber: ChamberView | null, signal: AbortSignal): Promise<boolean> {
    if (chamber === null) return Date.now() - call.at <= CREATION_MILLIS;
    if (call.phase !== chamber.phase) return false;
    if (!hasTurns(chamber.phase) || chamber.currentTurnAgent !== this.#agent.did) return true;
    const { eventId, passed } = (call.result ?? {}) as { readonly eventId?: unknown; readonly passed?: unknown };
    if (passed === true || typeof eventId !== 'number' || call.turnEndsAt !== chamber.turnEndsAt) return false;
    for await (const { event } of this.#agent.forum.history(chamber.chamberId, { after: eventId, signal })) {
      if (event.type === 'chamber.passed') return false;
    }
    return true;
  }

  #stepper(call: StoredCall, save: () => Promise<void>, signal: AbortSignal): Step {
    return async (name, send) => {
      const stored = call.steps.find((step) => step.name === name);
      if (stored?.result !== undefined) return stored.result as Awaited<ReturnType<typeof send>>;
      const result =
        (stored && (await this.#resolve(stored.request, signal))) ??
        (await send({
          signal,
          beforeSend: async (request) => {
            call.steps = [...call.steps.filter((step) => step.name !== name), { name, request }];
            await save();
          },
        }));
      call.steps = call.steps.map((step) => (step.name === name ? { ...step, result: { ...result } } : step));
      return result as Awaited<ReturnType<typeof send>>;
    };
  }

  /**
   * Repeats a request that the service may have accepted, and returns the response; undefined if the service did not accept it and no
   * longer can.
   */
  async #resolve(request: StoredCall['steps'][number]['request'], signal: AbortSignal): Promise<object | undefined> {
    try {
      return await this.#agent.resend<object>(request, { signal });
    } catch (error) {
      if (error instanceof ClientError && error.step === 'age') return undefined;
      throw error;
    }
  }

  #return(
    { id, result = {} }: StoredCall,
    { chamberId, signals }: Pick<ActingCall, 'chamberId'> & { readonly signals: ReadonlySet<AbortSignal> },
  ): object {
    const isCancelled = () => [...signals].every(({ aborted }) => aborted);
    if (isCancelled()) return result;
    this.#returned.add(id);
    const note = () => {
      this.#returned.delete(id);
      // If this fails, an equal call in a later process returns the result once more.
      if (!isCancelled()) this.#noteReceived(chamberId, id).catch(() => {});
    };
    setTimeout(note, RECEIVED_AFTER_MILLIS).unref();
    return result;
  }

  async #noteReceived(chamberId: number | null, id: string): Promise<void> {
    this.#returned.add(id);
    await this.#files.locked(new AbortController().signal, async () => {
      const calls = await this.#files.load(chamberId);
      const call = calls.find((each) => each.id === id);
      if (call === undefined) return;
      call.isReceived = true;
      await this.#files.save(chamberId, calls);
    });
    this.#returned.delete(id);
  }
}

/** Errors that mean that the move's turn or phase is over, or that the move is already in the log. */
const TOO_LATE_CODES: ReadonlySet<string> = new Set(['FORUM_ERR_PHASE', 'FORUM_ERR_TURN', 'FORUM_ERR_CONFLICT']);

/** Finds an earlier equal call that succeeded, for a call that is impossible now. */
function earlierSuccess(
  calls: readonly StoredCall[],
  { key, isAgain, chamberId }: ActingCall & { readonly key: string },
  error: unknown,
): StoredCall | undefined {
  if (isAgain || chamberId === null || !(error instanceof ClientError) || !TOO_LATE_CODES.has(error.code))
    return undefined;
  return calls.findLast((each) => each.key === key && each.result !== undefined);
}

/** Not validated, because this server created the result. */
function repeated<Result extends object>(result: object): Result & { readonly repeated: true } {
  return { ...(result as Result), repeated: true };
}

function unknownOutcome(millis: number): ClientError {
  const seconds = millis / 1_000;
  return new ClientError(
    'CLIENT_ERR_UNREACHABLE',
    `no response within ${seconds} s: the move may have been accepted. Call again with the same arguments: the move is made only once`,
  );
}
