// The audit of one chamber: every line passes through the checks in order, and only what they need of it is kept.
import { seatWallet } from '../../../projections/admission.ts';
import { type ChamberEvent, isMove, type MoveEvent, type ServiceEvent } from '../../vocabulary/events.ts';
import { fromHex, instantOf, type Millis, type PinnedKeys, toTimestamp } from '../../vocabulary/values.ts';
import { AccountReferences } from '../account/references.ts';
import type { RecordedBlock } from '../chain/recorded-block.ts';
import { type AuditContext, auditContext, isAhead, isDue } from '../context.ts';
import { ahead } from '../line/ahead.ts';
import { CopyCheck, foreignFormat } from '../line/copy.ts';
import { EvidenceChecks, startVerification, type Verification } from '../line/evidence.ts';
import { type RawLine, UnusableInput } from '../line/input.ts';
import { type LineRecord, readRecord } from '../line/record.ts';
import { Findings } from '../report/findings.ts';
import { Decisions, type Effect } from './decisions.ts';
import { MoveAccumulator, type MoveTree } from './move-tree.ts';
import { judgeSeen } from './seen.ts';
import { type Leaves, type Position, Sequence } from './sequence.ts';
import { ServiceEventChecks, type ServiceEventOptions } from './service-events.ts';

/** An outcome on the chain that the log claims, with the id under which it is reported. */
export interface Claim {
  readonly eventId: number;
  readonly event: Extract<ServiceEvent, { type: 'chamber.committed' | 'idea.deployed' | 'idea.deploy_failed' }>;
}

/** What a join records of the token that members must hold. */
export interface BalanceClaim extends RecordedBlock {
  readonly eventId: number;
  readonly token: string;
  readonly wallet: string | undefined;
  readonly balance: string;
}

/** What an audit takes for granted, to show what else is broken: see verdict.ts. */
export interface SetAside {
  /** Events that count as altered, with what to take their effect from. */
  readonly events: ReadonlyMap<number, Effect>;
  /** The leaves of lines that are altered, missing or unreadable, as far as the next lines hold them. */
  readonly leaves: Leaves;
  /** Whether the tree of the moves is not the one that was committed. */
  readonly isTree: boolean;
}

export interface AuditOptions extends Pick<ServiceEventOptions, 'readTransaction'> {
  /** An empty tree, in place of an accumulator. */
  readonly moves?: MoveTree | undefined;
  /** Shared where several chambers of one log are audited. */
  readonly context?: AuditContext | undefined;
  /** The chamber that all lines must belong to; without it, that of most lines. */
  readonly chamberId?: number | undefined;
  readonly aside?: SetAside | undefined;
  /** Called with each event in its place, before the next line. */
  readonly onEvent?: OnEvent | undefined;
}

export type OnEvent = (event: ChamberEvent, position: Position, line: Uint8Array) => void;

/** A line before its turn to be checked. */
export interface StartedLine extends LineRecord {
  /** The line as it was written, before tools changed the copy. */
  readonly line: RawLine;
  readonly copyProblem: string | undefined;
  readonly verification: Verification | undefined;
}

const IDS_NAMED_MAX = 100;
/** Input that begins with this many lines without an event is not a log, and the rest is not read. */
const UNREADABLE_FIRST_MAX = 100;

export class ChamberAudit {
  readonly findings: Findings;
  readonly claims: Claim[] = [];
  readonly balanceClaims: BalanceClaim[] = [];
  readonly accountReferences = new AccountReferences();
  lineCount = 0;
  /** The service's keys that the first event records; undefined where it records none. */
  pinnedKeys: PinnedKeys | undefined;
  /** The last event that a checkpoint has to cover by now; undefined while none is so old. */
  dueHead: Sequence['head'] | undefined;
  readonly decisions: Decisions;
  readonly context: AuditContext;
  readonly moves: MoveTree;
  readonly #sequence: Sequence;
  readonly #copy = new CopyCheck();
  readonly #aside: SetAside | undefined;
  readonly #serviceEvents: ServiceEventChecks;
  readonly #evidence: EvidenceChecks;
  readonly #chamberId: number | undefined;
  readonly #onEvent: OnEvent | undefined;
  /** The number of lines of each chamber, and the first of them. */
  readonly #linesByChamber = new Map<number, { readonly count: number; readonly eventIds: readonly number[] }>();
  #eventCount = 0;
  #createdAt: string | undefined;
  /** Of the first event, and of the one of the latest time. */
  #firstAt: Millis | undefined;
  #latest = { eventId: 0, at: 0 };
  #firstProblem = '';

  constructor(options: AuditOptions = {}) {
    const { context = auditContext(), moves = new MoveAccumulator(), chamberId, readTransaction } = options;
    this.context = context;
    this.findings = new Findings({ isAgain: options.aside !== undefined });
    this.decisions = new Decisions(this.findings);
    this.moves = moves;
    this.#chamberId = chamberId;
    this.#onEvent = options.onEvent;
    this.#evidence = new EvidenceChecks(this.findings, context);
    this.#serviceEvents = new ServiceEventChecks(this.findings, { context, moves, readTransaction });
    this.#aside = options.aside;
    this.#sequence = new Sequence(this.findings, options.aside?.leaves);
    if (options.aside?.isTree) this.decisions.isTreeKnown = false;
  }

  /** The leaves of lines that are missing, unreadable or altered: what the next lines hold. */
  get trueLeaves(): Leaves {
    return this.#sequence.trueLeaves;
  }

  get head(): Sequence['head'] {
    return this.#sequence.head;
  }

  get unsignedMoves(): number {
    return this.#evidence.unsignedMoves;
  }

  /** Checks the next line. Throws UnusableInput when the lines are not events at all. */
  async take(line: RawLine): Promise<void> {
    await this.finish(this.start(line));
  }

  /** Checks the next lines; signatures are verified while other lines are read and decided. */
  async takeAll(lines: AsyncIterable<RawLine>, onTaken?: (line: RawLine) => void): Promise<void> {
    for await (const started of ahead(lines, (line) => this.start(line))) {
      await this.finish(started);
      onTaken?.(started.line);
    }
  }

  /** Begins to verify the signature of a line, which is to be finished after those started before it. */
  start(line: RawLine): StartedLine {
    const { bytes, problem: copyProblem } = this.#copy.restore(line.bytes);
    const restored = { bytes, isEnded: line.isEnded };
    const record = readRecord(restored);
    const { event } = record;
    const isSigned = this.#aside === undefined && event !== undefined && isMove(event) && event.request !== null;
    const verification = isSigned ? startVerification(event.request, event.did, this.context) : undefined;
    return { line: restored, copyProblem, ...record, verification };
  }

  async finish({ line, copyProblem, event, problem, verification }: StartedLine): Promise<void> {
    this.lineCount++;
    if (copyProblem !== undefined) this.findings.judge('form', [this.#sequence.due], copyProblem);
    if (event === undefined) return this.#takeUnreadable(line, problem ?? '');
    this.#eventCount++;
    const position = this.#sequence.place(event, line.bytes);
    const { eventId, kind, lostEventId, alteredEventId } = position;
    this.findings.judge('form', [eventId], problem && `event ${eventId} ${problem}`);
    this.decisions.lostEventId ??= lostEventId;
    if (kind === 'next' && lostEventId !== undefined) this.#restoreLost(event, [lostEventId, eventId - 1]);
    if (alteredEventId !== undefined) this.decisions.distrust(alteredEventId);
    if (kind === 'repeat') return;
    this.#noteTime(eventId, instantOf(event.ts));
    const { count, eventIds } = this.#linesByChamber.get(event.chamberId) ?? { count: 0, eventIds: [] };
    const named = eventIds.length < IDS_NAMED_MAX ? [...eventIds, eventId] : eventIds;
    this.#linesByChamber.set(event.chamberId, { count: count + 1, eventIds: named });
    this.#onEvent?.(event, position, line.bytes);
    await this.#check(event, position, verification);
  }

  /** Reports what only the end of the input shows. Throws UnusableInput when there was no event. */
  conclude({ asksChain = false } = {}): void {
    if (this.lineCount === 0) throw new UnusableInput('it is empty, there is nothing to audit');
    if (this.#eventCount === 0) throw this.#noEvents();
    this.#sequence.conclude();
    this.#evidence.conclude();
    this.#serviceEvents.conclude(asksChain);
    this.#checkChamber();
    this.#checkClock();
    this.accountReferences.check(this.findings);
    if (this.decisions.state?.settlement.committed === null)
      this.findings.notEvaluated({ needs: 'later lines', why: 'the chamber is not committed yet' }, 'root');
  }

  /** A late line is checked by itself: the moves after its place were decided without it. */
  async #check(event: ChamberEvent, { eventId, kind, leaf }: Position, verification?: Verification): Promise<void> {
    const aside = this.#aside?.events.get(eventId);
    if (isMove(event)) {
      if (this.#aside === undefined) await this.#evidence.check(event, eventId, verification);
      if (kind !== 'next') return;
      const { state } = this.decisions;
      const isWalletOfSeat = state !== null && seatWallet(state, event.did) !== undefined;
      this.accountReferences.take(event, eventId, { isWalletOfSeat });
      this.#noteBalance(event, eventId);
      if (event.type === 'chamber.created') {
        this.pinnedKeys = event.payload.serviceKeys;
        this.#createdAt ??= event.ts;
      }
      if (aside === undefined) judgeSeen(this.findings, event, eventId, (id) => this.#sequence.leafAt(id));
      if (aside === undefined) this.decisions.check(event, eventId);
      else this.decisions.assume(event, aside);
      if (aside !== undefined && !this.#aside?.leaves.has(eventId)) this.decisions.isTreeKnown = false;
      this.moves.push(leaf);
    } else if (kind === 'next') {
      await this.#serviceEvents.check(event, eventId, this.decisions);
      this.decisions.fold(event);
      if (aside !== undefined) this.decisions.lostEventId ??= eventId;
      if (event.type === 'relay.commit_submitted' || event.type === 'relay.deploy_submitted') return;
      this.claims.push({ event, eventId });
    }
  }

  #noteTime(eventId: number, at: Millis): void {
    this.#firstAt ??= at;
    if (at > this.#latest.at) this.#latest = { eventId, at };
    const { head } = this;
    if (head.eventId === eventId && isDue(at, this.context.clock)) this.dueHead = head;
  }

  /** A service that dates lines ahead ends phases before their time. */
  #checkClock(): void {
    const { clock } = this.context;
    const { eventId, at } = this.#latest;
    if (this.#firstAt === undefined || !isAhead(at, this.context)) return;
    const ahead = `event ${eventId} is dated in the future, ${toTimestamp(at)}`;
    if (clock.isStated || !isAhead(this.#firstAt, this.context))
      this.findings.undecided('time', `${ahead}: if your clock is wrong, say with --now what time it is`);
    else this.findings.note('time', `${ahead}, as all of the log is: --now says by which time to judge it`);
  }

  #noteBalance({ type, payload, ts }: MoveEvent, eventId: number): void {
    const { admission, tokenChain } = this.decisions.state ?? {};
    if (type !== 'chamber.joined' || payload.token === undefined || admission?.token === undefined || !tokenChain)
      return;
    const { walletAddress: wallet, token } = payload;
    const block = this.context.blocks.problemOf(token);
    if (block !== undefined) this.findings.judge('balances', [eventId], `event ${eventId} ${block}`);
    const { address, at } = admission.token;
    // The block of the creation is named by every join then.
    const askedAt = instantOf(at === 'creation' ? (this.#createdAt ?? ts) : ts);
    this.balanceClaims.push({ eventId, chainId: tokenChain.chainId, token: address, wallet, askedAt, ...token });
  }

  /** One lost move has the leaf that the line after it holds. */
  #restoreLost(event: ChamberEvent, [from, to]: readonly [number, number]): void {
    if (this.#aside === undefined) return;
    const leaf = this.#aside.leaves.get(to);
    if (leaf !== undefined && from === to && isMove(event)) this.moves.push(fromHex(leaf));
    else this.decisions.isTreeKnown = false;
  }

  #takeUnreadable({ bytes }: RawLine, problem: string): void {
    const format = this.lineCount === 1 ? foreignFormat(bytes) : undefined;
    if (format !== undefined) throw new UnusableInput(`it is ${format}`);
    const eventId = this.#sequence.placeUnreadable(bytes);
    this.#firstProblem ||= problem;
    if (this.#eventCount === 0 && this.lineCount >= UNREADABLE_FIRST_MAX) throw this.#noEvents();
    this.findings.judge('form', [eventId], `line ${this.lineCount}, in the place of event ${eventId}, ${problem}`);
  }

  #noEvents(): UnusableInput {
    return new UnusableInput(`it contains no event of a chamber: line 1 ${this.#firstProblem}`);
  }

  #checkChamber(): void {
    const [most] = [...this.#linesByChamber].sort(([, a], [, b]) => b.count - a.count);
    const expected = this.#chamberId ?? most?.[0];
    for (const [chamberId, { count, eventIds }] of this.#linesByChamber) {
      const lines = count === 1 ? `event ${eventIds[0]} belongs` : `${count} lines belong`;
      const problem = `${lines} to chamber ${chamberId}, not to chamber ${expected}`;
      this.findings.judge('chamber', eventIds, chamberId !== expected && problem);
    }
  }
}
