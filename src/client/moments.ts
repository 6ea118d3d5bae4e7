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
import { pauseUntil } from './pause.ts';
import type { MerklePreview } from './requests.ts';

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

const RETRY_MILLIS = 100;

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
  try {
    let head = await headOf(service, chamberId, reading.signal);
    while (true) {
      let wakeAt = Number.POSITIVE_INFINITY;
      if (fold !== null && fold.state.lastEventId >= head) {
        const moment = momentAt(fold, service.clock.now());
        const key = interest(moment);
        const news = key === null || key === told ? null : await ask(service, moment, reading.signal);
        head = Math.max(head, news?.head ?? 0);
        if (news?.isConfirmed && fold.state.lastEventId >= head) {
          told = key;
          yield moment;
          continue;
        }
        wakeAt = news === null ? moment.endsAt : service.clock.now() + RETRY_MILLIS;
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

interface News {
  readonly isConfirmed: boolean;
  /** The last event that the service has. */
  readonly head: number;
}

/** What the service says of the moment; while it is away, nothing. Its phase also tells its clock. */
async function ask(service: Service, { phase, holder, state }: Moment, signal: AbortSignal): Promise<News> {
  const sentAt = service.clock.local();
  try {
    const path = `/chambers/${state.chamberId}`;
    const view = (await exchange(service, { method: 'GET', path }, signal)) as ChamberView;
    learnPhase(service, state, view.phase, sentAt);
    const head = await headOf(service, state.chamberId, signal);
    return { isConfirmed: view.phase === phase && view.currentTurnAgent === holder, head };
  } catch (error) {
    if (error instanceof ClientError && error.retryable) return { isConfirmed: false, head: 0 };
    throw error;
  }
}

async function headOf(service: Service, chamberId: number, signal: AbortSignal): Promise<number> {
  const path = `/chambers/${chamberId}/merkle-preview`;
  const { asOfEventId } = (await exchange(service, { method: 'GET', path }, signal)) as MerklePreview;
  return asOfEventId;
}

function learnPhase({ clock }: Service, { deadlines }: ChamberState, phase: Phase, sentAt: Millis): void {
  const order = PHASES.indexOf(phase);
  const [begin, end] = [DEADLINES[order - 1], DEADLINES[order]];
  const earliest = begin === undefined ? Number.NEGATIVE_INFINITY : deadlines[begin];
  const isOpen = end !== undefined && end !== 'allocateRevealDeadline';
  const latest = isOpen ? deadlines[end] - 1 : Number.POSITIVE_INFINITY;
  clock.learn({ earliest, latest }, { sentAt, receivedAt: clock.local() });
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
