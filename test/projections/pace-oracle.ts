/**
 * An independent oracle for phase, turn and ends, written from the specification's text. It shares no code with the product. It replays a
 * chamber from its first instant to the requested one, alarm by alarm, and keeps no state between calls.
 */

export const PHASES = ['LOBBY', 'PROPOSAL', 'DEBATE', 'ALLOCATE_COMMIT', 'ALLOCATE_REVEAL'] as const;
const [LOBBY, PROPOSAL, DEBATE, COMMIT, REVEAL] = [0, 1, 2, 3, 4];

const SPEECH = ['chamber.proposed', 'chamber.debated', 'chamber.amended', 'chamber.withdrawn'];

export interface OracleChamber {
  readonly createdAt: number;
  /** The five deadlines in milliseconds, in the order of the phases. */
  readonly deadlines: readonly number[];
  readonly turnSeconds?: number | undefined;
  readonly rounds?: { readonly proposal: number; readonly debate: number } | undefined;
  readonly maxMembers?: number | undefined;
  readonly minMembers?: number | undefined;
}

export interface OracleEvent {
  readonly ts: number;
  readonly type: string;
  readonly did: string | null;
}

export interface OracleAnswer {
  readonly phase: string;
  readonly holder: string | null;
  readonly ends: readonly number[];
  readonly revealClosed: boolean;
  /** The number of each member's expired turns, in the order of joining. */
  readonly missed: readonly number[];
}

export function askOracle(chamber: OracleChamber, events: readonly OracleEvent[], instant: number): OracleAnswer {
  const replay = new Replay(chamber);
  for (const event of events) {
    replay.advanceTo(event.ts);
    replay.apply(event);
  }
  // If the clock was set back behind the last event, the time of that event counts.
  replay.advanceTo(Math.max(instant, events.at(-1)?.ts ?? chamber.createdAt));
  return replay.answer();
}

class Replay {
  private phase = LOBBY as number;
  private readonly ended: number[] = [];
  private readonly members: string[] = [];
  private readonly committed = new Set<string>();
  private readonly revealed = new Set<string>();
  private onChain = false;
  private turn = { startedAt: 0, spoken: false };
  private turnsEnded = 0;
  private consecutiveSilent = 0;
  private readonly missed: number[] = [];

  private readonly chamber: OracleChamber;

  constructor(chamber: OracleChamber) {
    this.chamber = chamber;
  }

  /** Triggers every alarm up to and including this instant: an instant belongs to the phase or turn that begins at it. */
  advanceTo(until: number): void {
    while (this.phase <= REVEAL) {
      const deadline = this.deadline(this.phase);
      const turnExpiry = this.turnExpiresAt();
      if (Math.min(deadline, turnExpiry) > until) return;
      if (deadline === turnExpiry) this.countMissedTurn();
      if (deadline <= turnExpiry) this.endPhase(deadline);
      else this.endTurn(turnExpiry, 'expired');
    }
  }

  apply({ type, did, ts }: OracleEvent): void {
    const by = did ?? '';
    if (type === 'chamber.joined') {
      this.members.push(by);
      this.missed.push(0);
    }
    if (SPEECH.includes(type)) this.turn.spoken = true;
    if (type === 'allocation.committed') this.committed.add(by);
    if (type === 'allocation.revealed') this.revealed.add(by);
    if (type === 'chamber.committed') this.onChain = true;
    if (type === 'chamber.passed') this.endTurn(ts, 'passed');
    else if (this.completesPhase(type)) this.endPhase(ts);
  }

  answer(): OracleAnswer {
    const over = this.phase > REVEAL;
    const named = PHASES[Math.min(this.phase, REVEAL)] ?? '';
    return {
      phase: this.onChain ? 'COMMITTED' : named,
      holder: this.hasTurns() ? (this.members[this.turnsEnded % this.members.length] ?? null) : null,
      ends: this.endsAsKnown(),
      revealClosed: over,
      missed: this.missed,
    };
  }

  private completesPhase(type: string): boolean {
    if (!this.chamber.rounds) return false;
    if (this.phase === LOBBY) {
      return type === 'chamber.started' || this.members.length === this.chamber.maxMembers;
    }
    if (this.phase === COMMIT) return this.committed.size === this.members.length && this.members.length > 0;
    if (this.phase === REVEAL) {
      return type === 'allocation.revealed' && this.revealed.size === this.committed.size;
    }
    return false;
  }

  private endPhase(at: number): void {
    if (this.phase === LOBBY && this.members.length < (this.chamber.minMembers ?? 0)) {
      this.endAllPhases(at);
      return;
    }
    this.ended.push(at);
    this.phase += 1;
    this.turn = { startedAt: at, spoken: false };
    this.turnsEnded = 0;
    this.consecutiveSilent = 0;
    if (this.phase > REVEAL) return;
    const empty = this.isEmpty(this.phase);
    const nobodyReveals =
      this.chamber.rounds !== undefined &&
      this.phase === REVEAL &&
      this.members.length > 0 &&
      this.committed.size === 0;
    if (empty || nobodyReveals) this.endPhase(at);
  }

  /** Ends all phases at the same instant. */
  private endAllPhases(at: number): void {
    this.ended.push(at, at, at, at, at);
    this.phase = REVEAL + 1;
  }

  private endTurn(at: number, how: 'passed' | 'expired'): void {
    if (how === 'expired') this.countMissedTurn();
    const silent = how === 'passed' && !this.turn.spoken;
    this.consecutiveSilent = silent ? this.consecutiveSilent + 1 : 0;
    this.turnsEnded += 1;
    this.turn = { startedAt: at, spoken: false };
    if (!this.chamber.rounds) return;
    const allTurnsEnded = this.turnsEnded === this.turnsOf(this.phase);
    if (allTurnsEnded || this.consecutiveSilent === this.members.length) this.endPhase(at);
  }

  private countMissedTurn(): void {
    const holder = this.turnsEnded % this.members.length;
    this.missed[holder] = (this.missed[holder] ?? 0) + 1;
  }

  private endsAsKnown(): number[] {
    const ends = [...this.ended];
    for (let phase = ends.length; phase <= REVEAL; phase += 1) {
      ends.push(this.isEmpty(phase) ? (ends[phase - 1] ?? 0) : this.latestEnd(phase, ends[phase - 1]));
    }
    return ends;
  }

  /** Returns the latest possible end, which is reached if every further turn expires. */
  private latestEnd(phase: number, endBefore: number | undefined): number {
    const deadline = this.deadline(phase);
    if (!this.chamber.rounds || !this.hasTurns() || phase > DEBATE) return deadline;
    const [start, left] =
      phase === this.phase
        ? [this.turn.startedAt, this.turnsOf(phase) - this.turnsEnded]
        : [endBefore ?? 0, this.turnsOf(phase)];
    return Math.min(deadline, start + left * this.turnMillis());
  }

  private hasTurns(): boolean {
    return (this.phase === PROPOSAL || this.phase === DEBATE) && this.members.length > 0;
  }

  private turnExpiresAt(): number {
    return this.hasTurns() ? this.turn.startedAt + this.turnMillis() : Number.POSITIVE_INFINITY;
  }

  private turnMillis(): number {
    return (this.chamber.turnSeconds ?? Number.POSITIVE_INFINITY) * 1000;
  }

  private turnsOf(phase: number): number {
    const rounds = this.chamber.rounds;
    if (!rounds) return Number.POSITIVE_INFINITY;
    return (phase === PROPOSAL ? rounds.proposal : rounds.debate) * this.members.length;
  }

  private isEmpty(phase: number): boolean {
    return phase > LOBBY && this.deadline(phase) === this.deadline(phase - 1);
  }

  private deadline(phase: number): number {
    return this.chamber.deadlines[phase] ?? Number.POSITIVE_INFINITY;
  }
}
