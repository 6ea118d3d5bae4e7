// Watches a chamber, whose phases and turns follow from its events and the clock. Confirms each change with the service before emitting it,
// because clocks differ and lines may still be in transit.
import type { ChamberState } from '../../projections/chamber.ts';
import { phaseAt } from '../../projections/phase.ts';
import { nextClockChange, type TurnPhase, turnAt, turnHolderAt } from '../../projections/turn.ts';
import { type ChamberView, ENDS } from '../../projections/views.ts';
import type { Shape } from '../reading/shape.ts';
import { backoffMillis, linkedSignal } from '../reading/waiting.ts';
import { instantOf, type Millis, PHASES, type Phase } from '../vocabulary/values.ts';
import type { CallOptions, Service } from './call.ts';
import { ChamberFold } from './chamber-fold.ts';
import { nullIfRetryable } from './error.ts';
import { replay, type VerifiedLine } from './events.ts';
import { exchange } from './exchange.ts';
import { CHAMBER, MERKLE_PREVIEW } from './shapes.ts';
import type { ServiceClock } from './time.ts';

/** A turn of this agent. */
export interface Turn {
  readonly phase: TurnPhase;
  readonly state: ChamberState;
  /** When the turn ends unless the agent passes earlier, in milliseconds of the service's clock. */
  readonly endsAt: Millis;
}

export interface PhaseChange {
  readonly phase: Phase;
  readonly state: ChamberState;
}

export type Snapshot = ReturnType<typeof snapshotAt>;

/** Yields a snapshot when its key changes to another non-null key, only at the log's head and once the service confirms the change. */
export async function* changes(
  service: Service,
  chamberId: number,
  keyOf: (snapshot: Snapshot) => string | null,
  { signal }: CallOptions,
): AsyncGenerator<Snapshot, void, undefined> {
  const reading = linkedSignal(signal);
  const fold = new ChamberFold(service.limits);
  let lastPassId = 0;
  let lastEmitted: string | null = null;
  let misses = 0;
  try {
    let { head } = await readRemote(service, chamberId, reading.signal);
    const incoming = new IncomingLines(replay(service, chamberId, { head, signal: reading.signal }));
    while (true) {
      let wakeAt = Number.POSITIVE_INFINITY;
      const { state } = fold;
      if (state !== null && state.lastEventId >= head) {
        const snapshot = snapshotAt(state, lastPassId, service.clock.now());
        const key = keyOf(snapshot);
        const isChange = key !== null && key !== lastEmitted;
        // If the service is down, the change is confirmed later.
        const remote = isChange ? await readRemote(service, chamberId, reading.signal).catch(nullIfRetryable) : null;
        head = Math.max(head, remote?.head ?? 0);
        const isConfirmed = remote?.phase === snapshot.phase && remote.holder === snapshot.holder;
        if (isConfirmed && state.lastEventId >= head) {
          lastEmitted = key;
          misses = 0;
          yield snapshot;
          continue;
        }
        wakeAt = isChange ? service.clock.now() + backoffMillis(misses++) : snapshot.endsAt;
      }
      const line = await incoming.nextBefore(wakeAt, service.clock);
      if (line === null) continue;
      fold.take(line.event);
      if (line.event.type === 'chamber.passed') lastPassId = line.eventId;
    }
  } finally {
    reading.abort();
    reading.release();
  }
}

/** Returns the service's view of the chamber; `head` is the chamber's last event. */
async function readRemote(service: Service, chamberId: number, signal: AbortSignal) {
  const { clock } = service;
  const get = <Result>(path: string, shape: Shape) => exchange<Result>(service, { method: 'GET', path, shape }, signal);
  const sentAt = clock.local.now();
  const { phase, ends, currentTurnAgent } = await get<ChamberView>(`/chambers/${chamberId}`, CHAMBER);
  // The phase bounds the service's clock, except that a chamber stays in ALLOCATE_REVEAL after its deadline.
  const [begin, end] = [ENDS[PHASES.indexOf(phase) - 1], ENDS[PHASES.indexOf(phase)]];
  const earliest = begin === undefined ? Number.NEGATIVE_INFINITY : instantOf(ends[begin]);
  const isOpen = end !== undefined && end !== 'reveal';
  const latest = isOpen ? instantOf(ends[end]) - 1 : Number.POSITIVE_INFINITY;
  clock.learn({ earliest, latest }, { sentAt, receivedAt: clock.local.now() });
  const { asOfEventId } = await get<{ readonly asOfEventId: number }>(
    `/chambers/${chamberId}/merkle-preview`,
    MERKLE_PREVIEW,
  );
  return { phase, holder: currentTurnAgent, head: asOfEventId };
}

/** `lastPassId` distinguishes two turns of the same member. */
function snapshotAt(state: ChamberState, lastPassId: number, now: Millis) {
  const phase = phaseAt(state, now);
  const turn = turnAt(state, now);
  const turnKey = `${phase} ${lastPassId} ${turn?.expired ?? 0}`;
  return { state, phase, holder: turnHolderAt(state, now), turnKey, endsAt: nextClockChange(state, now) };
}

/**
 * Reads one line ahead. Each read is awaited once, however often the timer fires first: each Promise.race on a pending read would take
 * memory until the read settles, and a chamber may be silent for days.
 */
class IncomingLines {
  readonly #lines: AsyncGenerator<VerifiedLine, void, undefined>;
  #next: Promise<VerifiedLine>;
  #isSettled = false;
  #wake = () => {};

  constructor(lines: AsyncGenerator<VerifiedLine, void, undefined>) {
    this.#lines = lines;
    this.#next = this.#read();
  }

  #read(): Promise<VerifiedLine> {
    this.#isSettled = false;
    const next = this.#lines.next().then(({ value }) => {
      if (value === undefined) throw new Error('the stream of lines ended without an error');
      return value;
    });
    // When the caller stops iterating, the last read is aborted and never awaited.
    const settle = () => {
      this.#isSettled = true;
      this.#wake();
    };
    next.then(settle, settle);
    return next;
  }

  /** Returns null if `at` comes first. */
  async nextBefore(at: Millis, clock: ServiceClock): Promise<VerifiedLine | null> {
    if (!this.#isSettled) await this.#settledOr(at, clock);
    if (!this.#isSettled) return null;
    const line = await this.#next;
    this.#next = this.#read();
    return line;
  }

  async #settledOr(at: Millis, clock: ServiceClock): Promise<void> {
    const stop = new AbortController();
    await new Promise<void>((resolve, reject) => {
      this.#wake = resolve;
      if (at < Number.POSITIVE_INFINITY) clock.sleepUntil(at, stop.signal).then(resolve, reject);
    });
    stop.abort();
  }
}
