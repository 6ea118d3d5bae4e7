// A batch while it is decided: each command on what those before it in the batch have done, each accepted one staged as an
// event. Synchronous throughout: nothing is suspended between a check and its effect. The forum publishes the staged states after the append.
import { evolveAccount } from '../../projections/account.ts';
import { evolveChamber } from '../../projections/chamber.ts';
import { listingsOf } from '../../projections/listings.ts';
import { isSnapshotDue, SNAPSHOT_EVERY_EVENTS } from '../../projections/snapshot.ts';
import { appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../crypto/merkle.ts';
import type { LogEntry, StreamId } from '../log/log.ts';
import { changePersonality } from '../moves/change-personality.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type ChamberLimits, parseBody } from '../moves/move.ts';
import { isUnchanged, register, registeredDid } from '../moves/register.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { requireFresh, type SignatureAges } from '../moves/rules.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import { ForumError } from '../vocabulary/errors.ts';
import {
  type AccountEvent,
  type AccountFact,
  type ChamberEvent,
  type ForumEvent,
  fromLine,
  isMove,
  toLine,
} from '../vocabulary/events.ts';
import { type Millis, NO_PREVIOUS, toHex, toTimestamp } from '../vocabulary/values.ts';
import {
  type Caller,
  type Command,
  type CreateCommand,
  chamberNotFound,
  type MoveCommand,
  type PersonalityCommand,
  type RecordCommand,
  type RegisterCommand,
} from './commands.ts';
import { type Account, type Chamber, grownBytes, snapshotOf } from './streams.ts';

export interface Rules {
  readonly limits: ChamberLimits;
  readonly ages: SignatureAges;
  /** Whether an agent may register, create a chamber or join one. */
  readonly permits: (did: string) => boolean;
}

export interface BatchOptions extends Rules {
  /** For `ts` and phases: never falls. */
  readonly now: Millis;
  /** For the age of signatures. */
  readonly wallClock: Millis;
  readonly lastChamberId: number;
  /** At their heads; a stream without events is absent. They become the staged states. */
  readonly streams: Map<StreamId, Chamber | Account>;
  /** Chambers of each creator in the batch that are not committed, in the log. */
  readonly openChambers: Map<string, number>;
}

/** Bans stop only these. A banned member may finish its chambers. */
const NEED_PERMISSION: ReadonlySet<Command['operation']> = new Set(['register', 'createChamber', 'join']);

export class CommitBatch {
  readonly entries: LogEntry[];
  /** Streams with staged events. */
  readonly touched: Set<StreamId>;
  lastChamberId: number;
  readonly #options: BatchOptions;
  readonly #ts: string;
  readonly #accepted: Map<string, ForumEvent | null>;

  constructor(options: BatchOptions) {
    this.#options = options;
    this.#ts = toTimestamp(options.now);
    this.#accepted = new Map();
    this.entries = [];
    this.touched = new Set();
    this.lastChamberId = options.lastChamberId;
  }

  /**
   * The event that answers the command. `retried` is the line that its signature led to before. Throws ForumError; then
   * nothing is staged.
   */
  decide(command: Command, retried: string | undefined): ForumEvent | null {
    if (retried !== undefined) return fromLine(retried);
    if (command.operation === 'record') return this.#record(command);
    const { signature, times } = command.caller;
    const twin = signature === null ? undefined : this.#accepted.get(signature);
    if (twin !== undefined) return twin;
    if (NEED_PERMISSION.has(command.operation) && !this.#options.permits(command.caller.did)) {
      throw new ForumError('FORUM_ERR_FORBIDDEN', `${command.caller.did} is not allowed here`);
    }
    if (times !== null) requireFresh(times, this.#options.wallClock, this.#options.ages);
    let event: ForumEvent | null;
    if (command.operation === 'createChamber') event = this.#create(command);
    else if (command.operation === 'register') event = this.#register(command);
    else if (command.operation === 'changePersonality') event = this.#changePersonality(command);
    else event = this.#move(command);
    if (signature !== null) this.#accepted.set(signature, event);
    return event;
  }

  #move({ operation, chamberId, body, caller }: MoveCommand): ForumEvent {
    const { streams, now, limits } = this.#options;
    const chamber = chamberId === undefined ? undefined : (streams.get(chamberId) as Chamber | undefined);
    if (chamberId === undefined || chamber === undefined) throw chamberNotFound();
    const move: AnyChamberMove = chamberMoves[operation];
    const parsed = parseBody(move, body);
    const { did } = caller;
    const wallet = (streams.get(did) as Account).state.walletAddress;
    const payload = move.decide(parsed, { state: chamber.state, did, wallet, now, limits });
    return this.stage(chamberId, { type: move.event, payload }, caller, chamber);
  }

  #create({ body, caller }: CreateCommand): ForumEvent {
    const { openChambers, now, limits } = this.#options;
    const open = openChambers.get(caller.did) ?? 0;
    const payload = createChamber.decide(parseBody(createChamber, body), { now, openChambers: open, limits });
    openChambers.set(caller.did, open + 1);
    this.lastChamberId++;
    return this.stage(this.lastChamberId, { type: createChamber.event, payload }, caller);
  }

  #record({ chamberId, fact }: RecordCommand): ForumEvent {
    const chamber = this.#options.streams.get(chamberId) as Chamber | undefined;
    if (chamber === undefined) throw chamberNotFound();
    decideServiceFact(chamber.state, fact, this.#options.now);
    if (fact.type === 'chamber.committed' && fact.payload.merkleRoot !== toHex(rootOf(chamber.tree))) {
      throw new ServiceFactRejected('chamber.committed has another root than the chamber');
    }
    return this.stage(chamberId, fact, SERVICE, chamber);
  }

  #register({ body, caller }: RegisterCommand): ForumEvent | null {
    const parsed = parseBody(register, body);
    const { did, signature } = caller;
    const registered = registeredDid(parsed);
    if (registered !== did) {
      throw new ForumError('FORUM_ERR_SIGNATURE', `key: the registration of ${registered} is signed by ${did}`);
    }
    const { state = null } = (this.#options.streams.get(did) as Account | undefined) ?? {};
    const context = { state, isSigned: signature !== null };
    if (isUnchanged(parsed, context)) return null;
    const payload = register.decide(parsed, context);
    return this.stageAccount({ type: register.event, payload }, caller, parsed.operatorEmail);
  }

  #changePersonality({ body, caller }: PersonalityCommand): ForumEvent {
    const patch = parseBody(changePersonality, body);
    const { state } = this.#options.streams.get(caller.did) as Account;
    const payload = changePersonality.decide(patch, { state });
    return this.stageAccount({ type: changePersonality.event, payload }, caller);
  }

  /** Appends an event of a chamber to the batch without checking any rule. */
  stage(
    chamberId: number,
    { type, payload }: Pick<ChamberEvent, 'type' | 'payload'>,
    { did, request, signature }: Author,
    before?: Chamber,
  ): ForumEvent {
    const at = Math.max(this.#options.now, before?.state.lastAt ?? 0);
    // The type and its payload come from one slice, which a union can't express. Written out: this runs for every move.
    const event = {
      eventId: (before?.state.lastEventId ?? 0) + 1,
      chamberId,
      type,
      did,
      ts: at === this.#options.now ? this.#ts : toTimestamp(at),
      prev: before?.headHash ?? NO_PREVIOUS,
      payload,
      request,
    } as ChamberEvent;
    const line = Buffer.from(toLine(event));
    const leaf = leafHash(line);
    const state = evolveChamber(before?.state ?? null, event);
    const tree = before?.tree ?? EMPTY_TREE;
    const grown = isMove(event) ? appendLeaf(tree, leaf) : { tree, nodes: null };
    const bytes = grownBytes(before?.bytes, event, line.length);
    const after: Chamber = { state, tree: grown.tree, headHash: toHex(leaf), bytes };
    const mayBeDue = event.eventId % SNAPSHOT_EVERY_EVENTS === 0;
    const snapshot = mayBeDue && isSnapshotDue(state) ? snapshotOf(after) : undefined;
    this.#options.streams.set(chamberId, after);
    this.touched.add(chamberId);
    const listings = listingsOf(before?.state ?? null, state);
    this.entries.push({
      stream: chamberId,
      eventId: event.eventId,
      at,
      line,
      signature,
      nodes: grown.nodes,
      listings,
      snapshot,
    });
    return event;
  }

  /** Appends an event of an account to the batch without checking any rule. */
  stageAccount(
    { type, payload }: AccountFact,
    { did, request, signature }: Omit<Caller, 'times'>,
    email?: string,
  ): ForumEvent {
    const before = this.#options.streams.get(did) as Account | undefined;
    const at = Math.max(this.#options.now, before?.state.lastAt ?? 0);
    const eventId = (before?.state.lastEventId ?? 0) + 1;
    const prev = before?.headHash ?? NO_PREVIOUS;
    const common = { eventId, chamberId: null, did, ts: toTimestamp(at), prev, request };
    const line = toLine({ ...common, type, payload } as AccountEvent);
    // As the line has it, members in their order: a retry, and a restart, answer with the same bytes.
    const event = fromLine(line) as AccountEvent;
    const bytes = Buffer.from(line);
    this.#options.streams.set(did, {
      state: evolveAccount(before?.state ?? null, event),
      headHash: toHex(leafHash(bytes)),
      bytes: grownBytes(before?.bytes, event, bytes.length),
    });
    this.touched.add(did);
    const entry = { stream: did, eventId, at, line: bytes, signature, nodes: null, listings: [] };
    this.entries.push(email === undefined ? entry : { ...entry, operatorEmail: email });
    return event;
  }
}

export type Author = Pick<Caller, 'request' | 'signature'> & { readonly did: string | null };

const SERVICE: Author = { did: null, request: null, signature: null };
