// The audit of one chamber: every line passes through the checks in order, and nothing of it is kept but what they need.
import type { ChamberState } from '../../projections/chamber.ts';
import { type ChamberEvent, isMove, type MoveEvent, type ServiceEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import type { Hex } from '../vocabulary/values.ts';
import { AnnexChecks } from './annex.ts';
import { ChamberIds } from './chamber-ids.ts';
import { Decisions } from './decisions.ts';
import { EvidenceChecks } from './evidence.ts';
import { Ledger } from './ledger.ts';
import type { RawLine } from './line-reader.ts';
import { MovesRoot } from './moves-root.ts';
import { readRecord } from './record.ts';
import { type Place, Sequence } from './sequence.ts';
import { UnusableInput } from './unusable-input.ts';

/** An outcome in the log, under the id by which it is reported. */
export interface Claim {
  readonly eventId: number;
  readonly event: Extract<ServiceEvent, { type: 'chamber.committed' | 'idea.deployed' }>;
}

export interface AuditOptions {
  /** The chamber that the lines must be of; without it that of most lines. */
  readonly chamberId?: number;
  /** Signatures seen in other chambers of the same log, which must not occur again. */
  readonly signatures?: Map<string, number>;
}

/** So many lines without a single event are no log, and the rest is not read. */
const UNREADABLE_FIRST_MAX = 100;

export class ChamberAudit {
  readonly ledger = new Ledger();
  readonly #sequence = new Sequence(this.ledger);
  readonly #decisions = new Decisions(this.ledger);
  readonly #annex = new AnnexChecks(this.ledger);
  readonly #evidence: EvidenceChecks;
  readonly #chamberIds: ChamberIds;
  readonly #moves = new MovesRoot();
  readonly #claims: Claim[] = [];
  #lineCount = 0;
  #eventCount = 0;
  #firstProblem = '';

  constructor({ chamberId, signatures }: AuditOptions = {}) {
    this.#evidence = new EvidenceChecks(this.ledger, signatures);
    this.#chamberIds = new ChamberIds(this.ledger, chamberId);
  }

  /** The chamber after the moves that hold; null while none created it. */
  get state(): ChamberState | null {
    return this.#decisions.state;
  }

  /** An event whose effect is not known, so that the state is not to be relied on. */
  get lossEventId(): number | undefined {
    return this.#decisions.lossEventId;
  }

  /** What the log says to have happened on the chain. */
  get claims(): readonly Claim[] {
    return this.#claims;
  }

  get lineCount(): number {
    return this.#lineCount;
  }

  get moveCount(): number {
    return this.#moves.size;
  }

  get root(): Hex | null {
    const root = this.#moves.root();
    return root === undefined ? null : toHex(root);
  }

  /** Checks the next line. Throws UnusableInput when these are no events at all. */
  async take(line: RawLine): Promise<void> {
    this.#lineCount++;
    const { event, problem } = readRecord(line);
    if (event === undefined) return this.#takeUnreadable(line, problem ?? '');
    this.#eventCount++;
    const place = this.#sequence.place(event, line.bytes);
    const { eventId } = place;
    this.ledger.judge('form', problem === undefined, { eventIds: [eventId], sentence: `event ${eventId} ${problem}` });
    if (place.lostEventId !== undefined) this.#decisions.lose(place.lostEventId);
    if (place.alteredEventId !== undefined) this.#decisions.distrust(place.alteredEventId);
    if (place.kind === 'repeat') return;
    this.#chamberIds.take(event.chamberId, eventId);
    await this.#judge(event, place);
  }

  /** Reports what only the end of the input shows. Throws UnusableInput when there was no event. */
  conclude(): void {
    if (this.#lineCount === 0) throw new UnusableInput('it is empty, there is nothing to audit');
    if (this.#eventCount === 0) throw this.#noEvents();
    this.#sequence.conclude();
    this.#evidence.conclude();
    this.#chamberIds.conclude();
    this.#annex.conclude();
    if (this.state?.settlement.committed === null) this.ledger.notEvaluated('root', 'the chamber is not committed yet');
    this.ledger.notEvaluated('registration', 'registrations are not part of a chamber’s log');
  }

  async #judge(event: ChamberEvent, place: Place): Promise<void> {
    if (isMove(event)) return this.#judgeMove(event, place);
    if (place.kind !== 'next') return;
    const { state, lossEventId } = this.#decisions;
    await this.#annex.check(event, { state, lossEventId, moves: this.#moves, eventId: place.eventId });
    this.#decisions.fold(event);
    if (event.type === 'chamber.committed' || event.type === 'idea.deployed') {
      this.#claims.push({ event, eventId: place.eventId });
    }
  }

  #judgeMove(event: MoveEvent, { eventId, kind, leaf }: Place): void {
    this.#evidence.check(event, eventId);
    if (kind !== 'next') return;
    this.#decisions.check(event, eventId);
    this.#moves.push(leaf);
  }

  #takeUnreadable({ bytes }: RawLine, problem: string): void {
    const eventId = this.#sequence.placeUnreadable(bytes);
    this.#firstProblem ||= problem;
    if (this.#eventCount === 0 && this.#lineCount >= UNREADABLE_FIRST_MAX) throw this.#noEvents();
    this.ledger.broken('form', [eventId], `line ${this.#lineCount}, where event ${eventId} is due, ${problem}`);
  }

  #noEvents(): UnusableInput {
    return new UnusableInput(`it holds no event of a chamber: line 1 ${this.#firstProblem}`);
  }
}
