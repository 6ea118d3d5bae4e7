// Audits one chamber: passes each line through the checks in order, and keeps only the data they need.
import { seatWallet } from '../../../projections/admission.ts';
import { type ChamberEvent, isMove, type MoveEvent, type ServiceEvent } from '../../vocabulary/events.ts';
import { fromHex, instantOf, type Millis, type PinnedKeys, toTimestamp } from '../../vocabulary/values.ts';
import { AccountReferences } from '../account/references.ts';
import type { RecordedBlock } from '../chain/recorded-block.ts';
import { type AuditContext, auditContext, isAhead, isDue } from '../context.ts';
import { CopyCheck, foreignFormat } from '../line/copy.ts';
import { EvidenceChecks, startVerification, type Verification } from '../line/evidence.ts';
import { ahead, type RawLine, UnusableInput } from '../line/input.ts';
import { type LineRecord, readRecord } from '../line/record.ts';
import { type StartedStub, startStub } from '../line/stub.ts';
import { Findings } from '../report/findings.ts';
import { Decisions, type Effect } from './decisions.ts';
import { MoveAccumulator, type MoveTree } from './move-tree.ts';
import { judgeSeen } from './seen.ts';
import { type Leaves, type Position, Sequence } from './sequence.ts';
import { ServiceEventChecks, type ServiceEventOptions } from './service-events.ts';
import { StubChecks } from './stub-checks.ts';

/** An on-chain outcome claimed by the log. */
export interface Claim {
  readonly eventId: number;
  readonly event: Extract<ServiceEvent, { type: 'chamber.committed' | 'idea.deployed' | 'idea.deploy_failed' }>;
}

/** The token balance recorded by a join. */
export interface BalanceClaim extends RecordedBlock {
  readonly eventId: number;
  readonly token: string;
  readonly wallet: string | undefined;
  readonly balance: string;
}

/** Alterations that a further pass assumes, to find out what else is broken: see verdict.ts. */
export interface Assumptions {
  /** Altered events, with the source of each event's effect. */
  readonly events: ReadonlyMap<number, Effect>;
  /** The true leaves of altered, missing and unreadable lines, taken from `prev` of the lines after them. */
  readonly leaves: Leaves;
  /** Whether the tree of the moves is assumed to differ from the committed one. */
  readonly isTree: boolean;
}

export interface AuditOptions extends Pick<ServiceEventOptions, 'readTransaction'> {
  /** An empty tree. Defaults to an accumulator. */
  readonly moves?: MoveTree | undefined;
  readonly context?: AuditContext | undefined;
  /** Defaults to the chamber with the most lines. */
  readonly chamberId?: number | undefined;
  readonly assumptions?: Assumptions | undefined;
  /** Called with each event and its position, before the next line is taken. */
  readonly onEvent?: OnEvent | undefined;
}

interface Evidence {
  readonly verification: Verification | undefined;
  readonly stub: StartedStub | undefined;
}

export type OnEvent = (event: ChamberEvent, position: Position, line: Uint8Array) => void;

export interface StartedLine extends LineRecord {
  /** The bytes as they were before tools changed the copy. */
  readonly line: RawLine;
  readonly copyProblem: string | undefined;
  readonly verification: Verification | undefined;
  /** If the line is a stub and its original was provided, `event` is the original's. */
  readonly stub: StartedStub | undefined;
}

const IDS_NAMED_MAX = 100;
/** If none of this many first lines is an event, the input is rejected because it is not a log. */
const UNREADABLE_FIRST_MAX = 100;

export class ChamberAudit {
  readonly findings: Findings;
  readonly claims: Claim[] = [];
  readonly balanceClaims: BalanceClaim[] = [];
  readonly accountReferences = new AccountReferences();
  lineCount = 0;
  /** The service keys in the first event; undefined if it has none. */
  pinnedKeys: PinnedKeys | undefined;
  /** The last event that a checkpoint must cover by now; undefined if all events are too recent. */
  dueHead: Sequence['head'] | undefined;
  readonly decisions: Decisions;
  readonly context: AuditContext;
  readonly moves: MoveTree;
  readonly #sequence: Sequence;
  readonly #copy = new CopyCheck();
  readonly #assumptions: Assumptions | undefined;
  readonly #serviceEvents: ServiceEventChecks;
  readonly #evidence: EvidenceChecks;
  readonly #stubs: StubChecks;
  #pinnedKey: string | undefined;
  readonly #chamberId: number | undefined;
  readonly #onEvent: OnEvent | undefined;
  readonly #linesByChamber = new Map<number, { readonly count: number; readonly eventIds: readonly number[] }>();
  #eventCount = 0;
  #createdAt: string | undefined;
  #firstAt: Millis | undefined;
  #latest = { eventId: 0, at: 0 };
  #firstProblem = '';

  constructor(options: AuditOptions = {}) {
    const { context = auditContext(), moves = new MoveAccumulator(), chamberId, readTransaction } = options;
    this.context = context;
    this.findings = new Findings({ isRerun: options.assumptions !== undefined });
    this.decisions = new Decisions(this.findings);
    this.moves = moves;
    this.#chamberId = chamberId;
    this.#onEvent = options.onEvent;
    this.#evidence = new EvidenceChecks(this.findings, context);
    this.#stubs = new StubChecks(this.findings, context);
    this.#serviceEvents = new ServiceEventChecks(this.findings, { context, moves, readTransaction });
    this.#assumptions = options.assumptions;
    this.#sequence = new Sequence(this.findings, options.assumptions?.leaves);
    if (options.assumptions?.isTree) this.decisions.isTreeKnown = false;
  }

  /** The true leaves of missing, unreadable and altered lines, taken from `prev` of the lines after them. */
  get trueLeaves(): Leaves {
    return this.#sequence.trueLeaves;
  }

  get head(): Sequence['head'] {
    return this.#sequence.head;
  }

  /** The events whose texts are withheld and whose originals were not provided. */
  get withheldEvents(): readonly number[] {
    return this.#stubs.withheldEvents;
  }

  /** The same for the members' accounts. */
  get withheldAccountEvents(): StubChecks['withheldAccountEvents'] {
    return this.#stubs.withheldAccountEvents;
  }

  get stubs(): StubChecks {
    return this.#stubs;
  }

  /** The receipts key that the first line pins; undefined if it pins none or is withheld. */
  get pinnedKey(): string | undefined {
    return this.#pinnedKey;
  }

  get unsignedMoves(): number {
    return this.#evidence.unsignedMoves;
  }

  /** Checks the next line. Throws UnusableInput if the input is not a log. */
  async take(line: RawLine): Promise<void> {
    await this.finish(this.start(line));
  }

  /** Checks the next lines, verifying signatures concurrently with reading and deciding other lines. */
  async takeAll(lines: AsyncIterable<RawLine>, onTaken?: (line: RawLine) => void): Promise<void> {
    for await (const started of ahead(lines, (line) => this.start(line))) {
      await this.finish(started);
      onTaken?.(started.line);
    }
  }

  /** Starts verifying the line's signature. Lines must be finished in the order in which they were started. */
  start(line: RawLine): StartedLine {
    const { bytes, problem: copyProblem } = this.#copy.restore(line.bytes);
    const restored = { bytes, isEnded: line.isEnded };
    const read = readRecord(restored);
    const stub = startStub(read.event, this.context);
    const whole = stub?.original && { bytes: stub.original, isEnded: true };
    const record = whole ? readRecord(whole) : read;
    const { event } = record;
    const isSigned = this.#assumptions === undefined && event !== undefined && isMove(event) && event.request !== null;
    const verification = isSigned ? startVerification(event.request, event.did, this.context) : undefined;
    return { line: whole ?? restored, copyProblem, ...record, verification, stub };
  }

  async finish({ line, copyProblem, event, problem, verification, stub }: StartedLine): Promise<void> {
    this.lineCount++;
    if (copyProblem !== undefined)
      this.findings.judge('form', [this.#sequence.due], `the copy ${copyProblem}`, { code: 'copy' });
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
    await this.#check(event, position, { verification, stub });
    if (stub !== undefined && this.#assumptions === undefined) await this.#stubs.take(stub, eventId, this.#pinnedKey);
  }

  /** Reports problems that show only at the end of the input. Throws UnusableInput if there was no event. */
  conclude({ asksChain = false } = {}): void {
    if (this.lineCount === 0) throw new UnusableInput('it is empty');
    if (this.#eventCount === 0) throw this.#noEvents();
    this.#sequence.conclude();
    this.#evidence.conclude();
    this.#stubs.conclude();
    this.#serviceEvents.conclude(asksChain);
    this.#checkChamber();
    this.#checkClock();
    this.accountReferences.check(this.findings);
    if (this.decisions.state?.settlement.committed === null)
      this.findings.notEvaluated({ needs: 'later lines', why: 'the chamber is not committed yet' }, 'root');
  }

  /** Checks only the evidence of a late line: the moves after its place were decided without it. */
  async #check(
    event: ChamberEvent,
    { eventId, kind, leaf }: Position,
    { verification, stub }: Evidence,
  ): Promise<void> {
    const altered = this.#assumptions?.events.get(eventId);
    if (isMove(event)) {
      if (this.#assumptions === undefined) await this.#evidence.check(event, eventId, verification);
      if (kind !== 'next') return;
      const { state } = this.decisions;
      const isWalletOfSeat = state !== null && seatWallet(state, event.did) !== undefined;
      this.accountReferences.take(event, eventId, { isWalletOfSeat });
      this.#noteBalance(event, eventId);
      if (event.type === 'chamber.created') {
        this.pinnedKeys = event.payload.serviceKeys;
        // A stub can't pin the key, because that key verifies the stub itself.
        this.#pinnedKey = event.withheld === undefined ? event.payload.serviceKeys?.receipts : undefined;
        this.#createdAt ??= event.ts;
      }
      if (altered === undefined) {
        judgeSeen(this.findings, event, eventId, (id) => this.#sequence.leafAt(id));
        this.decisions.check(event, eventId, stub?.event.withheld);
      } else this.decisions.assume(event, altered, stub?.event.withheld);
      if (altered !== undefined && !this.#assumptions?.leaves.has(eventId)) this.decisions.isTreeKnown = false;
      this.moves.push(leaf);
    } else if (kind === 'next') {
      await this.#serviceEvents.check(event, eventId, this.decisions);
      this.decisions.fold(event, stub?.event.withheld);
      if (altered !== undefined) this.decisions.lostEventId ??= eventId;
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

  /** Reports lines dated in the future: a service that postdates lines ends phases too early. */
  #checkClock(): void {
    const { clock } = this.context;
    const { eventId, at } = this.#latest;
    if (this.#firstAt === undefined || !isAhead(at, this.context)) return;
    const ahead = `event ${eventId} is dated in the future, ${toTimestamp(at)}`;
    if (clock.isStated || !isAhead(this.#firstAt, this.context))
      this.findings.undecided('time', `${ahead}: if your clock is wrong, state the time with --now`);
    else this.findings.note('time', `${ahead}, like the whole log: --now states the time of the audit`);
  }

  #noteBalance({ type, payload, ts }: MoveEvent, eventId: number): void {
    const { admission, tokenChain } = this.decisions.state ?? {};
    if (type !== 'chamber.joined' || payload.token === undefined || admission?.token === undefined || !tokenChain)
      return;
    const { walletAddress: wallet, token } = payload;
    const block = this.context.blocks.problemOf(token);
    if (block !== undefined) this.findings.judge('balances', [eventId], `event ${eventId} ${block}`);
    const { address, at } = admission.token;
    // With `creation`, every join names the block of the creation.
    const askedAt = instantOf(at === 'creation' ? (this.#createdAt ?? ts) : ts);
    this.balanceClaims.push({ eventId, chainId: tokenChain.chainId, token: address, wallet, askedAt, ...token });
  }

  /** Restores the leaf of a single lost move from `prev` of the line after it. */
  #restoreLost(event: ChamberEvent, [from, to]: readonly [number, number]): void {
    if (this.#assumptions === undefined) return;
    const leaf = this.#assumptions.leaves.get(to);
    if (leaf !== undefined && from === to && isMove(event)) this.moves.push(fromHex(leaf));
    else this.decisions.isTreeKnown = false;
  }

  #takeUnreadable({ bytes }: RawLine, problem: string): void {
    const format = this.lineCount === 1 ? foreignFormat(bytes) : undefined;
    if (format !== undefined) throw new UnusableInput(`it is ${format}`);
    const eventId = this.#sequence.placeUnreadable(bytes);
    this.#firstProblem ||= problem;
    if (this.#eventCount === 0 && this.lineCount >= UNREADABLE_FIRST_MAX) throw this.#noEvents();
    this.findings.judge('form', [eventId], `line ${this.lineCount} (counted as event ${eventId}) ${problem}`);
  }

  #noEvents(): UnusableInput {
    return new UnusableInput(`it contains no chamber event: line 1 ${this.#firstProblem}`);
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
