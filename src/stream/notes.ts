// Sends notes on a chamber's stream to readers that ask for them: the reader has caught up, the phase has changed, a line that the reader has
// is now withheld. Notes follow from the chamber's state and not from a line, because the clock alone may change the phase.
import type { ChamberState } from '../../projections/chamber.ts';
import { phaseAt, phaseBy, phaseEnd } from '../../projections/phase.ts';
import { phaseOf } from '../../projections/phase-ends.ts';
import { turnHolderAt } from '../../projections/turn.ts';
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { detach } from '../process/detach.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { instantOf, type Millis, PHASES, type Phase, toTimestamp } from '../vocabulary/values.ts';

/** setTimeout fires at once if the delay is longer. */
const TIMER_MS_MAX = 2_147_483_647;

interface NotesOptions {
  readonly chamberId: number;
  /** The event after which the stream begins. */
  readonly after: number;
  /** The chamber's last event when the reader connected. */
  readonly head: number;
  /** Takes a note's JSON. */
  readonly send: (text: string) => void;
  /** Ends the stream when a due note can't be built. */
  readonly fail: (error: unknown) => void;
}

export class PhaseNotes {
  readonly #forum: Pick<Forum, 'chamber' | 'chamberInMemory' | 'now'>;
  readonly #options: NotesOptions;
  /** The last event delivered to the reader. */
  #cursor: number;
  /** The phase of the latest note; undefined until the reader has caught up. */
  #phase: Phase | undefined;
  /** `ts` of `chamber.committed`, which ends the last phase. */
  #committedAt: Millis | undefined;
  /** Events that were withheld before they were delivered, but perhaps after their lines were read. */
  #withheld: readonly number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(forum: Pick<Forum, 'chamber' | 'chamberInMemory' | 'now'>, options: NotesOptions) {
    this.#forum = forum;
    this.#options = options;
    this.#cursor = options.after;
  }

  /** Resolves once the chamber's state includes the page, which may be on disk earlier; returns undefined if the state includes it already. */
  whenIncluded(page: Page): Promise<unknown> | undefined {
    if (this.#phase === undefined) return undefined;
    const { chamberId } = this.#options;
    const { lastEventId = 0 } = this.#forum.chamberInMemory(chamberId)?.state ?? {};
    return lastEventId >= this.#cursor + page.count ? undefined : this.#forum.chamber(chamberId);
  }

  /**
   * Splits the page, and yields the notes of a change between the lines of two phases. All parts must be delivered. If the chamber's state
   * does not include the page yet, the notes follow at the head.
   */
  *partsOf(page: Page): Generator<Page | string> {
    if (this.#isStopped) return;
    yield* this.#phasesOf(page);
    const due = this.#withheld.filter((eventId) => eventId <= this.#cursor);
    if (due.length === 0) return;
    this.#withheld = this.#withheld.filter((eventId) => eventId > this.#cursor);
    yield* due.map(withheldNote);
  }

  /** Sends a note that the event is withheld, after the event's line. */
  withheld(eventId: number): void {
    if (eventId <= this.#cursor) this.#options.send(withheldNote(eventId));
    else this.#withheld = [...this.#withheld, eventId];
  }

  *#phasesOf(page: Page): Generator<Page | string> {
    const first = this.#cursor + 1;
    this.#cursor += page.count;
    if (this.#phase === undefined) return yield page;
    const state = this.#forum.chamberInMemory(this.#options.chamberId)?.state;
    const isIncluded = state !== undefined && state.lastEventId >= this.#cursor;
    const { ndjson } = page;
    let [from, taken] = [0, 0];
    for (let index = 0, start = 0; index < page.count; index++) {
      const end = ndjson.indexOf(LINE_BREAK, start) + 1;
      const { ts, type } = tailOf(ndjson, end);
      const phase =
        this.#committedAt !== undefined ? 'COMMITTED' : state && phaseOf(state, { eventId: first + index, ts });
      if (type === 'chamber.committed') this.#committedAt = instantOf(ts);
      if (isIncluded && phase !== undefined && isLater(phase, this.#phase)) {
        if (index > taken) yield { ndjson: ndjson.subarray(from, start), count: index - taken };
        [from, taken] = [start, index];
        yield* this.#changesTo(phase, state);
      }
      start = end;
    }
    yield taken === 0 ? page : { ndjson: ndjson.subarray(from), count: page.count - taken };
  }

  /** Called when the reader has every event up to the cursor, and the log has no later one. */
  async atHead(cursor: number): Promise<void> {
    const chamber = await this.#forum.chamber(this.#options.chamberId);
    // A reader that is behind gets more lines, and reaches the head again.
    if (chamber === undefined || chamber.state.lastEventId !== cursor || this.#cursor !== cursor) return;
    if (!this.#isStopped) this.#note(chamber.state);
  }

  #note(state: ChamberState): void {
    const now = this.#forum.now();
    const phase = phaseAt(state, now);
    if (this.#phase === undefined) {
      if (this.#cursor < this.#options.head) return;
      const turn = turnHolderAt(state, now);
      const { send } = this.#options;
      send(JSON.stringify({ note: 'caught-up', eventId: this.#cursor, phase, turn, now: toTimestamp(now) }));
      this.#phase = phase;
    } else for (const note of this.#changesTo(phase, state)) this.#options.send(note);
    const end = phase === 'ALLOCATE_REVEAL' ? null : phaseEnd(state, phase);
    clearTimeout(this.#timer);
    if (end === null) return;
    const { fail } = this.#options;
    const millis = Math.min(TIMER_MS_MAX, Math.max(1, end - now));
    this.#timer = setTimeout(() => detach(this.atHead(this.#cursor), fail), millis);
  }

  /** Yields a note for each phase that was not empty. Even a phase with lines may begin and end within a millisecond. */
  *#changesTo(phase: Phase, state: ChamberState): Generator<string> {
    for (let from = this.#phase as Phase; isLater(phase, from); from = this.#phase as Phase) {
      const { to: next, at } = changeAfter(from, state, this.#committedAt ?? state.lastAt);
      const to = isLater(next, phase) ? phase : next;
      this.#phase = to;
      yield JSON.stringify({ note: 'phase', from, to, at: toTimestamp(at) });
    }
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}

function isLater(one: Phase, other: Phase): boolean {
  return PHASES.indexOf(one) > PHASES.indexOf(other);
}

function withheldNote(eventId: number): string {
  return JSON.stringify({ note: 'withheld', eventId });
}

const LINE_BREAK = 0x0a;
/** Matches the end of a line or stub. Agents' texts can't match, because their quotes are escaped. */
const TAIL = /"ts":"([^"]+)","type":"([a-z_.]+)"(?:,"withheld":\{[^{}]*\})?\}\n$/;
const TAIL_BYTES_MAX = 640;

function tailOf(ndjson: Buffer, end: number): Pick<ChamberEvent, 'ts' | 'type'> {
  const [, ts = '', type = ''] = TAIL.exec(ndjson.toString('latin1', Math.max(0, end - TAIL_BYTES_MAX), end)) ?? [];
  return { ts, type: type as ChamberEvent['type'] };
}

/** Returns the next phase that was not empty, and when it began. */
function changeAfter(from: Phase, { ends }: ChamberState, committedAt: Millis): { to: Phase; at: Millis } {
  const at = phaseEnd({ ends }, from);
  if (at === null || from === 'ALLOCATE_REVEAL') return { to: 'COMMITTED', at: committedAt };
  return { to: phaseBy(ends, false, at), at };
}
