// A chamber over time: its events folded here, its phases and turns from the clock, each confirmed by the service before
// it is told, because clocks differ and lines may still be under way.
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { phaseAt, phaseStart } from '../../projections/phase.ts';
import { hasTurns, turnHolderAt } from '../../projections/turn.ts';
import type { ChamberView } from '../../projections/views.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { DEADLINES, type Millis, PHASES, type Phase } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';
import { exchange, type Service } from './exchange.ts';
import { leash } from './leash.ts';
import { lines, type VerifiedLine } from './lines.ts';
import { backoffMillis, pauseUntil } from './pause.ts';
import type { MerklePreview } from './requests.ts';
import type { ServiceClock, Span } from './service-clock.ts';

export interface Moment {
  readonly state: ChamberState;
  readonly phase: Phase;
  /** DID of the member in turn, or null. */
  readonly holder: string | null;
  /** Differs from one turn to the next. */
  readonly turn: string;
  /** When phase or turn change by themselves, by the service's clock; Infinity where only events change them. */
  readonly endsAt: Millis;
}

/** A chamber as folded so far. */
interface Fold {
  readonly state: ChamberState;
  /** Id of the last pass, which tells apart two turns of one member. */
  readonly lastPassId: number;
}

/** What of a moment the reader waits for: it is told when this changes; null is never told. */
export type Interest = (moment: Moment) => string | null;

/** Yields the moments in which `interest` takes a new value, only at the log's head and as the service sees them too. */
export async function* moments(
  service: Service,
  chamberId: number,
  interest: Interest,
  { signal }: { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<Moment, void, undefined> {
  const reading = leash(signal);
  const incoming = lines(service, chamberId, { signal: reading.signal });
  let arriving = arrivalOf(incoming);
  let fold: Fold | null = null;
  let told: string | null = null;
  let misses = 0;
  try {
    let { head } = await ask(service, chamberId, reading.signal);
    while (true) {
      let wakeAt = Number.POSITIVE_INFINITY;
      if (fold !== null && fold.state.lastEventId >= head) {
        const moment = momentAt(fold, service.clock.now());
        const key = interest(moment);
        const isNews = key !== null && key !== told;
        const word = isNews ? await ask(service, chamberId, reading.signal).catch(ignoreAbsence) : null;
        head = Math.max(head, word?.head ?? 0);
        const isConfirmed = word?.phase === moment.phase && word.holder === moment.holder;
        if (isConfirmed && fold.state.lastEventId >= head) {
          told = key;
          misses = 0;
          yield moment;
          continue;
        }
        wakeAt = isNews ? service.clock.now() + backoffMillis(misses++) : moment.endsAt;
      }
      const line = await arrivalBefore(wakeAt, arriving, service);
      if (line === null) continue;
      fold = evolve(fold, line.event);
      arriving = arrivalOf(incoming);
    }
  } finally {
    reading.abort();
    reading.release();
  }
}

function evolve(fold: Fold | null, event: ChamberEvent): Fold {
  const lastPassId = event.type === 'chamber.passed' ? event.eventId : (fold?.lastPassId ?? 0);
  return { state: evolveChamber(fold?.state ?? null, event), lastPassId };
}

function momentAt({ state, lastPassId }: Fold, now: Millis): Moment {
  const phase = phaseAt(state, now);
  const deadline = DEADLINES[PHASES.indexOf(phase)];
  const phaseEnd = deadline === undefined ? Number.POSITIVE_INFINITY : state.deadlines[deadline];
  const turn = turnSpan(state, phase, now);
  const endsAt = Math.min(phaseEnd, turn.endsAt);
  return {
    state,
    phase,
    holder: turnHolderAt(state, now),
    turn: `${phase} ${lastPassId} ${turn.number}`,
    // Past the reveal deadline nothing changes by itself any more.
    endsAt: endsAt > now ? endsAt : Number.POSITIVE_INFINITY,
  };
}

/** How many turns have run out since the last pass or the phase's start, and when the present one does. */
function turnSpan(state: ChamberState, phase: Phase, now: Millis): { number: number; endsAt: Millis } {
  if (state.turnSeconds === null || !hasTurns(phase)) return { number: 0, endsAt: Number.POSITIVE_INFINITY };
  const since = state.turn.phase === phase ? state.turn.since : phaseStart(state, phase);
  const length = state.turnSeconds * 1000;
  const number = Math.floor((Math.max(now, state.lastAt) - since) / length);
  return { number, endsAt: since + (number + 1) * length };
}

/** What the service says of itself. */
interface Word {
  readonly phase: Phase;
  readonly holder: string | null;
  /** The last event that it has. */
  readonly head: number;
}

/** The chamber as the service sees it. Its phase tells something of its clock too. */
async function ask(service: Service, chamberId: number, signal: AbortSignal): Promise<Word> {
  const path = `/chambers/${chamberId}`;
  const sentAt = service.clock.local();
  const view = (await exchange(service, { method: 'GET', path }, signal)) as ChamberView;
  learnPhase(service.clock, view, { sentAt, receivedAt: service.clock.local() });
  const preview = (await exchange(service, { method: 'GET', path: `${path}/merkle-preview` }, signal)) as MerklePreview;
  return { phase: view.phase, holder: view.currentTurnAgent, head: preview.asOfEventId };
}

function learnPhase(clock: ServiceClock, { phase, deadlines }: ChamberView, span: Span): void {
  const order = PHASES.indexOf(phase);
  const [begin, end] = [DEADLINES[order - 1], DEADLINES[order]];
  const earliest = begin === undefined ? Number.NEGATIVE_INFINITY : Date.parse(deadlines[begin]);
  // A chamber stays in ALLOCATE_REVEAL beyond its deadline.
  const isOpen = end !== undefined && end !== 'allocateRevealDeadline';
  const latest = isOpen ? Date.parse(deadlines[end]) - 1 : Number.POSITIVE_INFINITY;
  clock.learn({ earliest, latest }, span);
}

/** Nothing while the service is away: it will be asked again. */
function ignoreAbsence(error: unknown): null {
  if (error instanceof ClientError && error.retryable) return null;
  throw error;
}

type Arrival = Promise<VerifiedLine>;

function arrivalOf(incoming: AsyncGenerator<VerifiedLine, void, undefined>): Arrival {
  const arriving = incoming.next().then(({ value }) => {
    // Lines end by throwing only.
    if (value === undefined) throw new Error('the lines of a chamber have ended');
    return value;
  });
  // A reader who stops asking leaves the last one to be called off, which is nobody's failure.
  arriving.catch(() => {});
  return arriving;
}

/** The next line, or null when the time comes first. */
async function arrivalBefore(at: Millis, arriving: Arrival, { clock }: Service): Promise<VerifiedLine | null> {
  if (at === Number.POSITIVE_INFINITY) return await arriving;
  const stop = new AbortController();
  const timer = pauseUntil(at, clock, stop.signal).then(() => null);
  timer.catch(() => {});
  try {
    return await Promise.race([arriving, timer]);
  } finally {
    stop.abort();
  }
}
