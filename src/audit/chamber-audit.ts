// The audit of one chamber: every line passes through the checks in order, and only what they need of it is kept. This file
// and the checks need nothing of Node: where lines come from and which tree computes the root is for the caller.
import type { ChamberState } from '../../projections/chamber.ts';
import { type ChamberEvent, isMove, type ServiceEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { readTransaction } from './chain.ts';
import { Decisions } from './decisions.ts';
import { EvidenceChecks, type EvidenceOptions } from './evidence.ts';
import { Findings } from './findings.ts';
import { type RawLine, UnusableInput } from './input.ts';
import { readRecord } from './record.ts';
import { type Position, Sequence } from './sequence.ts';
import { ServiceEventChecks } from './service-events.ts';

/** The Merkle tree over the moves. */
export interface MoveTree {
  readonly size: number;
  push(leaf: Uint8Array): void;
  /** The root over all leaves so far; undefined without any. */
  root(): Uint8Array | undefined;
}

/** An outcome on the chain that the log claims, with the id under which it is reported. */
export interface Claim {
  readonly eventId: number;
  readonly event: Extract<ServiceEvent, { type: 'chamber.committed' | 'idea.deployed' }>;
}

export interface AuditOptions extends EvidenceOptions {
  /** Reads as readTransaction does, which is the default. */
  readonly readTransaction?: typeof readTransaction;
  /** Empty. */
  readonly moves: MoveTree;
  /** The chamber that all lines must belong to; without it, that of most lines. */
  readonly chamberId?: number | undefined;
}

interface ChamberLines {
  count: number;
  /** The first ones. */
  readonly eventIds: number[];
}

const IDS_NAMED_MAX = 100;
/** Input that begins with this many lines without an event is not a log, and the rest is not read. */
const UNREADABLE_FIRST_MAX = 100;

export class ChamberAudit {
  readonly findings = new Findings();
  readonly #sequence = new Sequence(this.findings);
  readonly #decisions = new Decisions(this.findings);
  readonly #serviceEvents: ServiceEventChecks;
  readonly #evidence: EvidenceChecks;
  readonly #moves: MoveTree;
  readonly #chamberId: number | undefined;
  readonly #linesByChamber = new Map<number, ChamberLines>();
  readonly #claims: Claim[] = [];
  #lineCount = 0;
  #eventCount = 0;
  #firstProblem = '';

  constructor(options: AuditOptions) {
    this.#evidence = new EvidenceChecks(this.findings, options);
    this.#serviceEvents = new ServiceEventChecks(this.findings, options.readTransaction);
    this.#moves = options.moves;
    this.#chamberId = options.chamberId;
  }

  /** The chamber after the moves that hold; null while none created it. */
  get state(): ChamberState | null {
    return this.#decisions.state;
  }

  /** An event whose effect is unknown, so that the state is not reliable. */
  get lostEventId(): number | undefined {
    return this.#decisions.lostEventId;
  }

  /** What the log says happened on the chain. */
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

  /** Checks the next line. Throws UnusableInput when the lines are not events at all. */
  async take(line: RawLine): Promise<void> {
    this.#lineCount++;
    const { event, problem } = readRecord(line);
    if (event === undefined) return this.#takeUnreadable(line, problem ?? '');
    this.#eventCount++;
    const position = this.#sequence.place(event, line.bytes);
    const { eventId, kind, lostEventId, alteredEventId } = position;
    this.findings.judge('form', problem === undefined, {
      eventIds: [eventId],
      sentence: `event ${eventId} ${problem}`,
    });
    if (lostEventId !== undefined) this.#decisions.lose(lostEventId);
    if (alteredEventId !== undefined) this.#decisions.distrust(alteredEventId);
    if (kind === 'repeat') return;
    this.#countLine(event.chamberId, eventId);
    await this.#check(event, position);
  }

  /** Reports what only the end of the input shows. Throws UnusableInput when there was no event. */
  conclude(): void {
    if (this.#lineCount === 0) throw new UnusableInput('it is empty, there is nothing to audit');
    if (this.#eventCount === 0) throw this.#noEvents();
    this.#sequence.conclude();
    this.#evidence.conclude();
    this.#serviceEvents.conclude();
    this.#checkChamber();
    if (this.state?.settlement.committed === null)
      this.findings.notEvaluated('root', 'the chamber is not committed yet');
    this.findings.notEvaluated('registration', 'the log of a chamber does not contain registrations');
  }

  /** A late line is checked by itself: the moves after its place were decided without it. */
  async #check(event: ChamberEvent, { eventId, kind, leaf }: Position): Promise<void> {
    if (isMove(event)) {
      this.#evidence.check(event, eventId);
      if (kind !== 'next') return;
      this.#decisions.check(event, eventId);
      this.#moves.push(leaf);
    } else if (kind === 'next') {
      const { state, lostEventId } = this.#decisions;
      await this.#serviceEvents.check(event, { state, lostEventId, moves: this.#moves, eventId });
      this.#decisions.fold(event);
      if (event.type === 'chamber.committed' || event.type === 'idea.deployed') this.#claims.push({ event, eventId });
    }
  }

  #takeUnreadable({ bytes }: RawLine, problem: string): void {
    const eventId = this.#sequence.placeUnreadable(bytes);
    this.#firstProblem ||= problem;
    if (this.#eventCount === 0 && this.#lineCount >= UNREADABLE_FIRST_MAX) throw this.#noEvents();
    this.findings.broken('form', [eventId], `line ${this.#lineCount}, in the place of event ${eventId}, ${problem}`);
  }

  #noEvents(): UnusableInput {
    return new UnusableInput(`it contains no event of a chamber: line 1 ${this.#firstProblem}`);
  }

  #countLine(chamberId: number, eventId: number): void {
    const lines = this.#linesByChamber.get(chamberId) ?? { count: 0, eventIds: [] };
    this.#linesByChamber.set(chamberId, lines);
    lines.count++;
    if (lines.eventIds.length < IDS_NAMED_MAX) lines.eventIds.push(eventId);
  }

  #checkChamber(): void {
    const [most] = [...this.#linesByChamber].sort(([, a], [, b]) => b.count - a.count);
    const expected = this.#chamberId ?? most?.[0];
    for (const [chamberId, { count, eventIds }] of this.#linesByChamber) {
      const lines = count === 1 ? `event ${eventIds[0]} belongs` : `${count} lines belong`;
      const sentence = `${lines} to chamber ${chamberId}, not to chamber ${expected}`;
      this.findings.judge('chamber', chamberId === expected, { eventIds, sentence });
    }
  }
}
