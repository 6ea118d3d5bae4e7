// Watches a chamber: phases and turns follow from its events and the clock. The service confirms each change before it is
// emitted, because clocks differ and lines may still be in transit.
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { phaseAt, phaseStart } from '../../projections/phase.ts';
import { hasTurns, type TurnPhase, turnHolderAt } from '../../projections/turn.ts';
import type { ChamberView } from '../../projections/views.ts';
import { DEADLINES, type Millis, PHASES, type Phase } from '../vocabulary/values.ts';
import type { VerifiedLine } from './chain.ts';
import { ClientError } from './error.ts';
import { lines } from './events.ts';
import { type CallOptions, exchange, type Service } from './exchange.ts';
import { backoffMillis, linkedSignal, type ServiceClock, type Span } from './time.ts';

export interface Turn {
  readonly phase: TurnPhase;
  /** The chamber as it is now, folded from its events. */
  readonly state: ChamberState;
  /** When the turn ends unless it is passed before, in milliseconds of the service's clock. */
  readonly endsAt: Millis;
}

export interface PhaseChange {
  readonly phase: Phase;
  readonly state: ChamberState;
}

/** The member's turns, each once; ends when PROPOSAL and DEBATE are over. */
export async function* turns(
  service: Service,
  chamberId: number,
  did: string,
  options: CallOptions,
): AsyncGenerator<Turn, void, undefined> {
  const keyOf = ({ phase, holder, turnKey }: Snapshot) => {
    if (phase !== 'LOBBY' && !hasTurns(phase)) return 'over';
    return holder === did ? turnKey : null;
  };
  for await (const { phase, state, endsAt } of changes(service, chamberId, keyOf, options)) {
    if (!hasTurns(phase)) return;
    yield { phase, state, endsAt };
  }
}

/** The current phase, then each later one; ends with COMMITTED. */
export async function* phases(
  service: Service,
  chamberId: number,
  options: CallOptions,
): AsyncGenerator<PhaseChange, void, undefined> {
  for await (const { phase, state } of changes(service, chamberId, (snapshot) => snapshot.phase, options)) {
    yield { phase, state };
    if (phase === 'COMMITTED') return;
  }
}

/** A chamber at one time, computed here. */
interface Snapshot {
  readonly state: ChamberState;
  readonly phase: Phase;
  /** DID of the member in turn, or null. */
  readonly holder: string | null;
  /** Differs from one turn to the next. */
  readonly turnKey: string;
  /** When phase or turn change by the clock alone, in the service's time; Infinity if only events change them. */
  readonly endsAt: Millis;
}

/** Emits a snapshot when its key changes and is not null, only at the log's head and once the service agrees. */
async function* changes(
  service: Service,
  chamberId: number,
  keyOf: (snapshot: Snapshot) => string | null,
  { signal }: CallOptions,
): AsyncGenerator<Snapshot, void, undefined> {
  const reading = linkedSignal(signal);
  const incoming = lines(service, chamberId, { signal: reading.signal });
  let nextLine = takeNext(incoming);
  let state: ChamberState | null = null;
  let lastPassId = 0;
  let lastEmitted: string | null = null;
  let misses = 0;
  try {
    let { head } = await readRemote(service, chamberId, reading.signal);
    while (true) {
      let wakeAt = Number.POSITIVE_INFINITY;
      if (state !== null && state.lastEventId >= head) {
        const snapshot = snapshotAt(state, lastPassId, service.clock.now());
        const key = keyOf(snapshot);
        const isChange = key !== null && key !== lastEmitted;
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
      const line = await lineBefore(wakeAt, nextLine, service.clock);
      if (line === null) continue;
      state = evolveChamber(state, line.event);
      if (line.event.type === 'chamber.passed') lastPassId = line.eventId;
      nextLine = takeNext(incoming);
    }
  } finally {
    reading.abort();
    reading.release();
  }
}

function takeNext(incoming: AsyncGenerator<VerifiedLine, void, undefined>): Promise<VerifiedLine> {
  const next = incoming.next().then(({ value }) => {
    if (value === undefined) throw new Error('the stream of lines ended without an error');
    return value;
  });
  // When the caller stops iterating, the last read is aborted and nobody awaits it.
  next.catch(() => {});
  return next;
}

/** The chamber as the service sees it; `head` is its last event. */
async function readRemote(service: Service, chamberId: number, signal: AbortSignal) {
  const get = <Result>(path: string) => exchange<Result>(service, { method: 'GET', path }, signal);
  const sentAt = service.clock.local();
  const view = await get<ChamberView>(`/chambers/${chamberId}`);
  learnPhase(service.clock, view, { sentAt, receivedAt: service.clock.local() });
  const preview = await get<{ readonly asOfEventId: number }>(`/chambers/${chamberId}/merkle-preview`);
  return { phase: view.phase, holder: view.currentTurnAgent, head: preview.asOfEventId };
}

/** The service's phase bounds the service's clock. */
function learnPhase(clock: ServiceClock, { phase, deadlines }: ChamberView, span: Span): void {
  const order = PHASES.indexOf(phase);
  const [begin, end] = [DEADLINES[order - 1], DEADLINES[order]];
  const earliest = begin === undefined ? Number.NEGATIVE_INFINITY : Date.parse(deadlines[begin]);
  // A chamber stays in ALLOCATE_REVEAL beyond its deadline.
  const isOpen = end !== undefined && end !== 'allocateRevealDeadline';
  const latest = isOpen ? Date.parse(deadlines[end]) - 1 : Number.POSITIVE_INFINITY;
  clock.learn({ earliest, latest }, span);
}

/** The id of the last pass distinguishes two turns of one member. */
function snapshotAt(state: ChamberState, lastPassId: number, now: Millis): Snapshot {
  const phase = phaseAt(state, now);
  const deadline = DEADLINES[PHASES.indexOf(phase)];
  const phaseEnd = deadline === undefined ? Number.POSITIVE_INFINITY : state.deadlines[deadline];
  const turn = turnSpan(state, phase, now);
  const endsAt = Math.min(phaseEnd, turn.endsAt);
  return {
    state,
    phase,
    holder: turnHolderAt(state, now),
    turnKey: `${phase} ${lastPassId} ${turn.number}`,
    // After the reveal deadline only events change anything.
    endsAt: endsAt > now ? endsAt : Number.POSITIVE_INFINITY,
  };
}

/** How many turns have expired since the last pass or the phase's start, and when the current one expires. */
function turnSpan(state: ChamberState, phase: Phase, now: Millis): { number: number; endsAt: Millis } {
  if (state.turnSeconds === null || !hasTurns(phase)) return { number: 0, endsAt: Number.POSITIVE_INFINITY };
  const since = state.turn.phase === phase ? state.turn.since : phaseStart(state, phase);
  const length = state.turnSeconds * 1000;
  const number = Math.floor((Math.max(now, state.lastAt) - since) / length);
  return { number, endsAt: since + (number + 1) * length };
}

/** While the service is down, a change is confirmed later. */
function nullIfRetryable(error: unknown): null {
  if (error instanceof ClientError && error.retryable) return null;
  throw error;
}

/** The next line, or null if the time comes first. */
async function lineBefore(at: Millis, nextLine: Promise<VerifiedLine>, clock: ServiceClock) {
  if (at === Number.POSITIVE_INFINITY) return await nextLine;
  const stop = new AbortController();
  const timer = clock.sleepUntil(at, stop.signal).then(() => null);
  timer.catch(() => {});
  try {
    return await Promise.race([nextLine, timer]);
  } finally {
    stop.abort();
  }
}
