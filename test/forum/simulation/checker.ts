// Checks a history of requests against the log, which is its linearization. The checker shares only the pure rules with the forum.
//
//  1. Each stream is a chain: eventIds have no gaps, prev is the hash of the previous line, ts never decreases.
//  2. Each signature is in the log at most once, and each accepted command exactly once, as the line of its response. All accepted
//     requests with the same signature got that line.
//  3. Each line was requested, and is the rules' decision on the previous state and on the account event that the line names. That event
//     was the account's head at some moment between the request and the line.
//  4. If a command's response preceded another request, the command precedes it in the log, per stream and in the ids of chambers.
//  5. A read shows at least the events answered before it was sent, at most the log at the time of its response, and no other lines. By
//     the ts of a line its signature was neither too old nor expired, because auditors know no other time.
//  6. A rejection is the rules' decision at some moment between its request and its response, before a line with its signature.
//  7. No agent ever has more open chambers than allowed.

import type { ChamberState } from '../../../projections/chamber.ts';
import { nextClockChange } from '../../../projections/turn.ts';
import { moveOfEvent } from '../../../src/moves/registry.ts';
import { requireFresh, type SignatureAges } from '../../../src/moves/rules.ts';
import { type ForumEvent, isMove, type MoveEvent } from '../../../src/vocabulary/events.ts';
import { canonicalJson } from '../../../src/vocabulary/json.ts';
import { type Millis, type PinnedKeys, SIGNATURE_AGES } from '../../../src/vocabulary/values.ts';
import type { AnsweredEvent, AskedCommand, AskedRead, History, HistoryRequest, Stream } from './history.ts';
import { redecide } from './redecide.ts';
import { type Folded, StreamFolds } from './stream-history.ts';

type CommandRequest = HistoryRequest & { readonly asked: AskedCommand };
type ReadRequest = HistoryRequest & { readonly asked: AskedRead };

/** The position of an event in the log. */
interface Place {
  readonly stream: Stream;
  readonly folded: Folded;
}

/** Stands for the ids of chambers: each creation takes the next id. */
const ALL_CHAMBERS = 0;

export class Checker {
  readonly #folds = new StreamFolds();
  /** Lines that were found to be correct, each with the account event that it names; lines recur in many histories. */
  readonly #right = new Set<string>();

  /** Returns the problems, one line each; none if the history is possible. */
  check(history: History): readonly string[] {
    return new Check(history, this.#folds, this.#right).run();
  }
}

/** A moment, given by the head of each stream. */
type Cut = (stream: Stream) => number;

class Check {
  readonly #history: History;
  readonly #streams = new Map<Stream, readonly Folded[]>();
  readonly #problems = new Set<string>();
  readonly #right: Set<string>;
  readonly #bySignature = new Map<string, Place>();
  readonly #commands: readonly CommandRequest[];
  readonly #reads: readonly ReadRequest[];
  /** The requests by signature, in the order of their invocations. Unsigned requests never repeat each other. */
  readonly #requestsOf: ReadonlyMap<string | null, readonly CommandRequest[]>;
  /** The number of lines written up to and including this one, by `stream:eventId`. */
  readonly #commitIndex = new Map<string, number>();

  constructor(history: History, folds: StreamFolds, right: Set<string>) {
    this.#right = right;
    this.#history = history;
    for (const [stream, lines] of history.lines) {
      this.#streams.set(
        stream,
        folds.fold(stream, lines, (problem) => this.#problems.add(problem)),
      );
    }
    for (const [index, { stream, eventId }] of (history.commits ?? []).entries()) {
      this.#commitIndex.set(`${stream}:${eventId}`, index + 1);
    }
    this.#commands = history.requests.filter(isCommand);
    this.#reads = history.requests.filter(isRead);
    this.#requestsOf = Map.groupBy(this.#commands, ({ asked }) => asked.signature);
  }

  run(): readonly string[] {
    this.#checkSignatures();
    for (const request of this.#commands) this.#checkOutcome(request);
    for (const [stream, folded] of this.#streams) {
      for (const each of folded) this.#checkLine(stream, each, folded[each.event.eventId - 2]);
    }
    this.#checkHiddenRegistrations();
    this.#checkOrder();
    for (const request of this.#reads) this.#checkRead(request);
    this.#checkOpenChambers();
    return [...this.#problems];
  }

  #checkSignatures(): void {
    for (const [stream, lines] of this.#streams) {
      for (const folded of lines) {
        const signature = folded.event.request?.signature;
        if (signature === undefined) continue;
        const other = this.#bySignature.get(signature);
        if (other !== undefined)
          this.#problems.add(`${signature} led to ${nameOf(other.folded)} and to ${nameOf(folded)}`);
        this.#bySignature.set(signature, { stream, folded });
      }
    }
  }

  #checkOutcome(request: CommandRequest): void {
    const { id, asked, outcome } = request;
    if (outcome === undefined || outcome.is === 'read') return;
    if (outcome.is === 'defect') this.#problems.add(`${id} caused a defect: ${outcome.problem}`);
    else if (outcome.is === 'accepted') this.#checkAcceptance(request, outcome.event);
    else if (outcome.is === 'unchanged') this.#checkUnchanged(request);
    else if (!UNJUDGED.has(outcome.code) && asked.operation !== 'record') this.#checkRejection(request, outcome.code);
  }

  #checkAcceptance(request: CommandRequest, { eventId, chamberId, line }: AnsweredEvent): void {
    const { id, asked, respondedAt = 0 } = request;
    const place = this.#placeOf(asked, eventId, chamberId);
    if (place === undefined) return void this.#problems.add(`${id} was accepted, but is not in the log`);
    const { folded } = place;
    const isSame =
      (eventId ?? folded.event.eventId) === folded.event.eventId &&
      (chamberId === undefined || chamberId === folded.event.chamberId) &&
      (line ?? folded.line) === folded.line;
    if (!isSame) {
      const answered = line ?? `event ${eventId} of ${chamberId}`;
      this.#problems.add(`${id} got the response ${answered}, but its line is ${folded.line}`);
    }
    const writtenAt = this.#writtenAt(folded);
    if (writtenAt !== undefined && writtenAt > respondedAt) {
      this.#problems.add(`${id} got its response at ${respondedAt}, but ${nameOf(folded)} was written at ${writtenAt}`);
    }
    const first = this.#firstOf(request);
    if (asked.operation === 'register' && writtenAt !== undefined && writtenAt < first.invokedAt)
      this.#checkUnchanged(request);
  }

  /** The first request with this signature. */
  #firstOf(request: CommandRequest): CommandRequest {
    const { signature } = request.asked;
    return (signature === null ? undefined : this.#requestsOf.get(signature)?.[0]) ?? request;
  }

  /** Returns the line with the command's signature; if the log lacks that, the line that the response names. */
  #placeOf(asked: AskedCommand, eventId: number | undefined, chamberId: number | null | undefined): Place | undefined {
    const signed = asked.signature === null ? undefined : this.#bySignature.get(asked.signature);
    if (signed !== undefined || (asked.signature !== null && asked.operation !== 'register')) return signed;
    const stream = chamberId ?? asked.chamberId ?? asked.did;
    const folded = stream === null ? undefined : this.#streams.get(stream)?.[(eventId ?? 0) - 1];
    if (stream === null || folded === undefined) return undefined;
    return { stream, folded };
  }

  /** The response to such a retry is the line that it repeats. */
  #checkUnchanged(request: CommandRequest): void {
    const { invokedAt } = this.#firstOf(request);
    const isRight = this.#someDecision({ ...request, invokedAt }, (decision) => decision.is === 'unchanged');
    if (!isRight)
      this.#problems.add(
        `${request.id} got the response of a repetition, but would have changed something at every moment`,
      );
  }

  #checkRejection(request: CommandRequest, code: string): void {
    const { clock, asked } = request;
    if (clock === undefined) return;
    if (code === 'FORUM_ERR_SIGNATURE') {
      if ([clock.from, clock.to].some((now) => isStale(asked, now, this.#ages))) return;
    } else if (this.#someDecision(request, (decision) => decision.is === 'rejected' && decision.code === code)) return;
    this.#problems.add(`${request.id} was rejected with ${code}, which was justified at no moment after the request`);
  }

  /** Returns whether the rules decide this way at a moment between the request and its response, before a line with its signature. */
  #someDecision(request: CommandRequest, isSought: (decision: ReturnType<typeof redecide>) => boolean): boolean {
    const { asked, clock = { from: 0, to: 0 } } = request;
    const { chamberId, did } = asked;
    for (const cut of this.#cutsOf(request)) {
      const chamber = chamberId === null ? null : (this.#stateAt(chamberId, cut)?.chamber ?? null);
      const account = did === null ? null : (this.#stateAt(did, cut)?.account ?? null);
      const openChambers = asked.operation === 'createChamber' ? this.#openChambers(did as string, cut) : 0;
      const { limits } = this.#history;
      for (const now of timesOf(clock, chamber)) {
        const situation = { chamber, account, openChambers, limits, now: Math.max(now, account?.lastAt ?? 0) };
        if (isSought(redecide(asked, situation))) return true;
      }
    }
    return false;
  }

  #stateAt(stream: Stream, cut: Cut): Folded | undefined {
    return this.#streams.get(stream)?.[cut(stream) - 1];
  }

  /** Returns the moments at which the request may have been decided. */
  #cutsOf(request: CommandRequest): readonly Cut[] {
    const { asked } = request;
    const own = asked.signature === null ? undefined : this.#bySignature.get(asked.signature)?.folded;
    if (this.#history.commits !== undefined) return this.#commitCuts(request, own);
    const streams = [asked.chamberId, asked.did].filter((stream) => stream !== null);
    return streams.reduce<readonly Cut[]>(
      (cuts, stream) => {
        const [low, high] = this.#headsBetween(stream, request, own);
        const heads = Array.from({ length: Math.max(0, high - low + 1) }, (_, index) => low + index);
        return cuts.flatMap((cut) =>
          heads.map(
            (head): Cut =>
              (other) =>
                other === stream ? head : cut(other),
          ),
        );
      },
      [(stream) => this.#streams.get(stream)?.length ?? 0],
    );
  }

  #commitCuts(
    { invokedAt, respondedAt = Number.POSITIVE_INFINITY }: HistoryRequest,
    own: Folded | undefined,
  ): readonly Cut[] {
    const { commits = [] } = this.#history;
    const ownIndex = own === undefined ? undefined : this.#commitIndex.get(nameOf(own));
    const first = commits.filter(({ writtenAt }) => writtenAt <= invokedAt).length;
    const last = Math.min(
      commits.filter(({ writtenAt }) => writtenAt <= respondedAt).length,
      (ownIndex ?? Number.POSITIVE_INFINITY) - 1,
    );
    const heads = new Map<Stream, number>();
    const cuts: Cut[] = [];
    for (let index = 0; index <= last; index++) {
      const commit = commits[index - 1];
      if (commit !== undefined) heads.set(commit.stream, commit.eventId);
      if (index < first) continue;
      const at = new Map(heads);
      cuts.push((stream) => at.get(stream) ?? 0);
    }
    return cuts;
  }

  /** Returns the heads shown by other responses, if the store does not report when it wrote a line. */
  #headsBetween(
    stream: Stream,
    { invokedAt, respondedAt = Number.POSITIVE_INFINITY }: HistoryRequest,
    own: Folded | undefined,
  ) {
    let low = 0;
    let high = this.#streams.get(stream)?.length ?? 0;
    if (own !== undefined && streamOf(own.event) === stream) high = own.event.eventId - 1;
    for (const { eventId, first, answeredAt } of this.#acceptancesOf(stream)) {
      if (answeredAt < invokedAt) low = Math.max(low, eventId);
      if (first > respondedAt) high = Math.min(high, eventId - 1);
    }
    return [low, high] as const;
  }

  #acceptedOf: ReadonlyMap<Stream, readonly Acceptance[]> | undefined;

  #acceptancesOf(stream: Stream): readonly Acceptance[] {
    this.#acceptedOf ??= Map.groupBy(this.#acceptances(), (accepted) => accepted.stream);
    return this.#acceptedOf.get(stream) ?? [];
  }

  #accepted: readonly Acceptance[] | undefined;

  /** Returns each accepted command once, with its first request and its first response. */
  #acceptances(): readonly Acceptance[] {
    if (this.#accepted !== undefined) return this.#accepted;
    const found = new Map<string, Acceptance>();
    for (const { asked, invokedAt, respondedAt = Number.POSITIVE_INFINITY, outcome } of this.#commands) {
      if (outcome?.is !== 'accepted') continue;
      const place = this.#placeOf(asked, outcome.event.eventId, outcome.event.chamberId);
      if (place === undefined) continue;
      const { stream, folded } = place;
      const before = found.get(nameOf(folded));
      const requests = asked.signature === null ? undefined : this.#requestsOf.get(asked.signature);
      const first = requests?.[0]?.invokedAt ?? invokedAt;
      // A registration that changed nothing gets the repeated line as its response, which is older than its first request.
      const isOwn = asked.signature !== null && this.#bySignature.has(asked.signature);
      if (!isOwn && first > (this.#writtenAt(folded) ?? Number.NEGATIVE_INFINITY)) continue;
      found.set(nameOf(folded), {
        stream,
        eventId: folded.event.eventId,
        type: folded.event.type,
        first: Math.min(first, before?.first ?? first),
        answeredAt: Math.min(respondedAt, before?.answeredAt ?? Number.POSITIVE_INFINITY),
      });
    }
    this.#accepted = [...found.values()];
    return this.#accepted;
  }

  #checkLine(stream: Stream, folded: Folded, before: Folded | undefined): void {
    const { event } = folded;
    if (event.request === null && event.type !== 'agent.registered') return;
    const requests = event.request === null ? [] : (this.#requestsOf.get(event.request.signature) ?? []);
    const [first] = requests;
    if (first === undefined) {
      if (event.request !== null && this.#history.isComplete)
        this.#problems.add(`${nameOf(folded)}: no request asked for it`);
      return;
    }
    const writtenAt = this.#writtenAt(folded);
    if (writtenAt !== undefined && writtenAt < first.invokedAt)
      this.#problems.add(`${nameOf(folded)} is older than ${first.id}`);
    if (event.request !== null && isStale(first.asked, Date.parse(event.ts), this.#ages))
      this.#problems.add(`${nameOf(folded)} was accepted at ${event.ts}, when its signature was too old or expired`);
    this.#checkDecision(stream, folded, before, first.asked);
    this.#checkAccount(folded, first);
  }

  get #ages(): SignatureAges {
    return this.#history.ages ?? SIGNATURE_AGES.caps;
  }

  /** Checks that the line is the rules' decision on the previous state. */
  #checkDecision(stream: Stream, { event, ...folded }: Folded, before: Folded | undefined, asked: AskedCommand): void {
    const name = nameOf({ event });
    const operation = operationOf(event);
    const isAsked = asked.operation === operation && asked.did === event.did && (asked.chamberId ?? stream) === stream;
    if (!isAsked) return void this.#problems.add(`${name} does not match the request ${asked.signature}`);
    const did = event.did as string;
    const named = (event.payload as { readonly accountEventId?: number }).accountEventId;
    const accounts = this.#streams.get(did) ?? [];
    const account = event.chamberId === null ? before?.account : accounts[(named ?? accounts.length) - 1]?.account;
    const key = `${folded.line} ${accounts[(named ?? 0) - 1]?.line} ${asked.operation} ${JSON.stringify(asked.body)}`;
    if (this.#right.has(key)) return;
    const decision = redecide(asked, {
      chamber: before?.chamber ?? null,
      account: account ?? null,
      openChambers: 0,
      now: Date.parse(event.ts),
      limits: this.#history.limits,
      serviceKeys: (event.payload as { readonly serviceKeys?: PinnedKeys }).serviceKeys,
    });
    const isRight = decision.is === 'event' && canonicalJson(decision.payload) === canonicalJson(event.payload);
    if (isRight) this.#right.add(key);
    else this.#problems.add(`${name} is not the decision of the rules: ${JSON.stringify(decision)}, ${folded.line}`);
  }

  #checkAccount(folded: Folded, first: HistoryRequest): void {
    const { event } = folded;
    const named = (event.payload as { readonly accountEventId?: number }).accountEventId;
    if (named === undefined) return;
    const accounts = this.#streams.get(event.did as string) ?? [];
    const [account, next] = [accounts[named - 1], accounts[named]];
    const isEarlier = this.#history.commits === undefined || this.#isBefore(account, folded);
    if (account === undefined || !isEarlier || account.event.ts > event.ts) {
      this.#problems.add(`${nameOf(folded)} names event ${named} of its account, which does not exist`);
      return;
    }
    if (next === undefined) return;
    const isPassed = this.#acceptancesOf(event.did as string).some(
      ({ eventId, answeredAt }) => eventId > named && answeredAt < first.invokedAt,
    );
    const passedAt = this.#writtenAt(next);
    if (isPassed || (passedAt !== undefined && passedAt <= first.invokedAt)) {
      this.#problems.add(
        `${nameOf(folded)} names event ${named} of its account, which was replaced before the request`,
      );
    }
  }

  #isBefore(one: Folded | undefined, other: Folded): boolean {
    if (one === undefined) return false;
    return (this.#commitIndex.get(nameOf(one)) ?? 0) < (this.#commitIndex.get(nameOf(other)) ?? 0);
  }

  /** Checks that there are no more registrations without evidence than were requested. */
  #checkHiddenRegistrations(): void {
    if (!this.#history.isComplete) return;
    const asked = new Map<string | null, Set<string>>();
    for (const { id, asked: command } of this.#commands) {
      if (command.operation !== 'register') continue;
      const signatures = asked.get(command.did) ?? new Set();
      asked.set(command.did, signatures.add(command.signature ?? id));
    }
    for (const [stream, lines] of this.#streams) {
      if (typeof stream === 'number') continue;
      const hidden = lines.filter(({ event }) => event.type === 'agent.registered' && event.request === null);
      if (hidden.length > (asked.get(stream)?.size ?? 0)) this.#problems.add(`${stream} has a duplicate registration`);
    }
  }

  #checkOrder(): void {
    for (const stream of this.#streams.keys()) this.#checkOrderOf(this.#acceptancesOf(stream));
    const created = this.#acceptances().filter(({ type }) => type === 'chamber.created');
    this.#checkOrderOf(created.map((each) => ({ ...each, stream: ALL_CHAMBERS, eventId: each.stream as number })));
  }

  #checkOrderOf(accepted: readonly Acceptance[]): void {
    const answered = [...accepted].sort((one, other) => one.answeredAt - other.answeredAt);
    let latest: Acceptance | undefined;
    let at = 0;
    for (const sent of [...accepted].sort((one, other) => one.first - other.first)) {
      for (; (answered[at]?.answeredAt ?? Number.POSITIVE_INFINITY) < sent.first; at++) {
        const each = answered[at] as Acceptance;
        if (latest === undefined || each.eventId > latest.eventId) latest = each;
      }
      if (latest !== undefined && latest.eventId >= sent.eventId) {
        this.#problems.add(
          `event ${sent.eventId} of ${sent.stream} was sent after the response to event ${latest.eventId}`,
        );
      }
    }
  }

  #checkRead({ id, asked: { stream }, invokedAt, respondedAt = 0, outcome }: ReadRequest): void {
    if (outcome?.is === 'defect') this.#problems.add(`${id} caused a defect: ${outcome.problem}`);
    if (outcome?.is !== 'read') return;
    const { lastEventId, headHash } = outcome;
    let least = 0;
    for (const { eventId, answeredAt } of this.#acceptancesOf(stream)) {
      if (answeredAt < invokedAt) least = Math.max(least, eventId);
    }
    if (lastEventId < least)
      this.#problems.add(`${id} showed event ${lastEventId} of ${stream} after the response to event ${least}`);
    const lines = this.#streams.get(stream) ?? [];
    const { commits } = this.#history;
    const most =
      commits === undefined
        ? lines.length
        : commits.filter((commit) => commit.stream === stream && commit.writtenAt <= respondedAt).length;
    if (lastEventId > most)
      this.#problems.add(`${id} showed event ${lastEventId} of ${stream}, whose head was ${most}`);
    const head = lines[lastEventId - 1];
    if (headHash !== undefined && head !== undefined && head.leaf !== headHash) {
      this.#problems.add(`${id} showed an event ${lastEventId} of ${stream} that differs from the log`);
    }
  }

  #checkOpenChambers(): void {
    if (this.#history.commits === undefined) return;
    const { openChambersPerDidMax } = this.#history.limits;
    const open = new Map<string, number>();
    for (const { stream, eventId } of this.#history.commits) {
      const event = this.#streams.get(stream)?.[eventId - 1]?.event;
      const creator = this.#streams.get(stream)?.[0]?.chamber?.creatorDid;
      if (event === undefined || creator === undefined) continue;
      if (event.type === 'chamber.committed') open.set(creator, (open.get(creator) ?? 0) - 1);
      if (event.type !== 'chamber.created') continue;
      open.set(creator, (open.get(creator) ?? 0) + 1);
      if ((open.get(creator) ?? 0) > openChambersPerDidMax) {
        this.#problems.add(`${creator} has more than ${openChambersPerDidMax} open chambers with chamber ${stream}`);
      }
    }
  }

  #openChambers(did: string, cut: Cut): number {
    let open = 0;
    for (const [stream, lines] of this.#streams) {
      if (typeof stream !== 'number' || lines[0]?.chamber?.creatorDid !== did) continue;
      const state = lines[cut(stream) - 1]?.chamber;
      if (state && state.settlement.committed === null) open++;
    }
    return open;
  }

  #writtenAt({ event }: Pick<Folded, 'event'>): number | undefined {
    const index = this.#commitIndex.get(nameOf({ event }));
    return index === undefined ? undefined : this.#history.commits?.[index - 1]?.writtenAt;
  }
}

interface Acceptance {
  readonly stream: Stream;
  readonly eventId: number;
  readonly type: string;
  /** The moment of the first request. */
  readonly first: number;
  /** The moment of the first response. */
  readonly answeredAt: number;
}

/** Errors without a decision. */
const UNJUDGED: ReadonlySet<string> = new Set(['FORUM_ERR_UNAVAILABLE', 'FORUM_ERR_RATE', 'FORUM_ERR_INTERNAL']);

function isRead(request: HistoryRequest): request is ReadRequest {
  return 'stream' in request.asked;
}

function isCommand(request: HistoryRequest): request is CommandRequest {
  return 'operation' in request.asked;
}

function streamOf({ chamberId, did }: ForumEvent): Stream {
  return chamberId ?? (did as string);
}

function nameOf({ event }: Pick<Folded, 'event'>): string {
  return `${streamOf(event)}:${event.eventId}`;
}

function operationOf(event: ForumEvent): string {
  if (event.type === 'agent.registered') return 'register';
  if (event.type === 'agent.personality_changed') return 'changePersonality';
  if (event.type === 'agent.retired') return 'retire';
  return isMove(event) ? moveOfEvent[(event as MoveEvent).type].operation : 'record';
}

/** Returns false if the times of the signature are unknown. */
function isStale({ created, expires }: AskedCommand, now: Millis, ages: SignatureAges): boolean {
  if (created === undefined) return false;
  try {
    requireFresh({ created, ...(expires !== undefined && { expires }) }, now, ages);
    return false;
  } catch {
    return true;
  }
}

/** Returns the ends of the interval, and each instant within it at which the chamber changes without an event. */
function timesOf(
  { from, to }: { readonly from: Millis; readonly to: Millis },
  chamber: ChamberState | null,
): readonly Millis[] {
  const times = new Set([from]);
  if (chamber !== null) {
    for (let at = nextClockChange(chamber, from); at < to; at = nextClockChange(chamber, at)) times.add(at);
  }
  return [...times.add(to)];
}
