// A batch while it is being decided: events on top of the folded states, dropped as a whole when the append fails.
import { evolveAccount } from '../../projections/account.ts';
import { evolveChamber } from '../../projections/chamber.ts';
import { type Listing, listingsOf } from '../../projections/listings.ts';
import { appendLeaf, EMPTY_TREE, leafHash } from '../crypto/merkle.ts';
import type { LogEntry, StreamId } from '../log/log.ts';
import {
  type AccountEvent,
  type AccountFact,
  type ChamberEvent,
  type ForumEvent,
  fromLine,
  isMove,
  type MoveEvent,
  type MoveFact,
  type RequestEvidence,
  type ServiceEvent,
  type ServiceFact,
  toLine,
} from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Millis, NO_PREVIOUS, toTimestamp } from '../vocabulary/values.ts';
import type { StreamStates } from './held-streams.ts';
import type { Account, Chamber } from './streams.ts';

/** Who asks, and the evidence for it. */
export interface Author {
  readonly did: string;
  readonly request: RequestEvidence | null;
  /** The signatureKey; null for unsigned requests. */
  readonly signature: string | null;
}

interface Evidence {
  readonly signature: string | null;
  readonly operatorEmail?: string | undefined;
}

export class Draft {
  readonly now: Millis;
  readonly #streams: StreamStates;
  readonly #chambers = new Map<number, Chamber>();
  readonly #accounts = new Map<string, Account>();
  readonly #entries: LogEntry[] = [];
  readonly #nowText: string;
  #lastChamberId: number;

  constructor(streams: StreamStates, lastChamberId: number, now: Millis) {
    this.#streams = streams;
    this.#lastChamberId = lastChamberId;
    this.now = now;
    this.#nowText = toTimestamp(now);
  }

  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  get lastChamberId(): number {
    return this.#lastChamberId;
  }

  chamber(chamberId: number): Chamber | undefined {
    return this.#chambers.get(chamberId) ?? this.#streams.chamber(chamberId);
  }

  account(did: string): Account | undefined {
    return this.#accounts.get(did) ?? this.#streams.account(did);
  }

  /** Appends a move; without a chamberId to a new chamber. */
  appendMove(fact: MoveFact, { did, request, signature }: Author, chamberId = this.#lastChamberId + 1): MoveEvent {
    const before = this.chamber(chamberId);
    const { eventId, ts, prev } = this.#next(before);
    const { type, payload } = fact;
    // Written out, not spread: this runs for every move.
    const event = { eventId, chamberId, type, did, ts, prev, payload, request } as MoveEvent;
    this.#appendChamberEvent(event, before, { signature });
    this.#lastChamberId = Math.max(this.#lastChamberId, chamberId);
    return event;
  }

  appendService(fact: ServiceFact, chamberId: number): ServiceEvent {
    const before = this.chamber(chamberId);
    const event = { ...this.#next(before), chamberId, did: null, request: null, ...fact } as ServiceEvent;
    this.#appendChamberEvent(event, before, { signature: null });
    return event;
  }

  appendAccount(fact: AccountFact, { did, request, signature }: Author, operatorEmail?: string): AccountEvent {
    const before = this.account(did);
    const line = toLine({ ...this.#next(before), chamberId: null, did, request, ...fact } as AccountEvent);
    // As the line has it, members in their order: a retry, and a restart, answer with the same bytes.
    const event = fromLine(line) as AccountEvent;
    const state = evolveAccount(before?.state ?? null, event);
    const email = operatorEmail ?? before?.operatorEmail;
    const bytes = Buffer.from(line);
    this.#accounts.set(did, { state, headHash: toHex(leafHash(bytes)), operatorEmail: email });
    this.#push(did, { event, line: bytes, nodes: null, listings: [] }, { signature, operatorEmail });
    return event;
  }

  /** Makes the drafted states the current ones, once their events are in the log. */
  publish(): ReadonlyMap<number, Chamber> {
    for (const chamber of this.#chambers.values()) this.#streams.setChamber(chamber);
    for (const account of this.#accounts.values()) this.#streams.setAccount(account);
    return this.#chambers;
  }

  /** Forgets the states that the batch touched: the next command folds them from the log again. */
  discard(): void {
    for (const stream of [...this.#chambers.keys(), ...this.#accounts.keys()]) this.#streams.forget(stream);
  }

  #next(before: Chamber | Account | undefined) {
    const at = Math.max(this.now, before?.state.lastAt ?? 0);
    return {
      eventId: (before?.state.lastEventId ?? 0) + 1,
      ts: at === this.now ? this.#nowText : toTimestamp(at),
      prev: before?.headHash ?? NO_PREVIOUS,
    };
  }

  #appendChamberEvent(event: ChamberEvent, before: Chamber | undefined, evidence: Evidence): void {
    const line = Buffer.from(toLine(event));
    const leaf = leafHash(line);
    const state = evolveChamber(before?.state ?? null, event);
    const tree = before?.tree ?? EMPTY_TREE;
    const grown = isMove(event) ? appendLeaf(tree, leaf) : { tree, nodes: null };
    this.#chambers.set(event.chamberId, { state, tree: grown.tree, headHash: toHex(leaf) });
    this.#push(event.chamberId, { event, line, nodes: grown.nodes, listings: listingsOf(event, state) }, evidence);
  }

  #push(stream: StreamId, written: Written, { signature, operatorEmail }: Evidence): void {
    const { event, line, nodes, listings } = written;
    const at = event.ts === this.#nowText ? this.now : Date.parse(event.ts);
    const entry = { stream, eventId: event.eventId, at, line, signature, nodes, listings };
    this.#entries.push(operatorEmail === undefined ? entry : { ...entry, operatorEmail });
  }
}

interface Written {
  readonly event: ForumEvent;
  readonly line: Uint8Array;
  readonly nodes: Uint8Array | null;
  readonly listings: readonly Listing[];
}
