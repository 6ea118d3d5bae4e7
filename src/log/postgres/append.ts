// Appends of a node. append-statement.ts explains why nodes need not coordinate. In addition:
//
// 1. An append whose result was lost is repeated: its leads wait for the first attempt as for any competitor. If the rows then exist with the
//    same lines, the first attempt succeeded.
// 2. Searching for competitors before each insert costs the server an eighth of its time, and competitors are rare if each chamber is used on
//    one node. So a statement fails at the first competitor, and runs again with the search.
// 3. A response depends only on events that the synchronous standbys have. If a backend ended while it waited for them, its rows are visible
//    earlier. A batch that writes an event confirms, by its commit, that event and everything that its decisions read. The look-up confirms
//    the rest: the lines of repeated signatures, and the heads of a batch that wrote nothing or is repeated.
// 4. If a registration of the batch is already stored, the whole statement fails, and runs again without it and its account.
import pg from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import type { DamagedStreams } from '../damage.ts';
import {
  ALL_CHAMBERS,
  type AppendBatch,
  type AppendResult,
  isCreation,
  type LogEntry,
  type Registration,
} from '../log.ts';
import { type Columns, jsonRows } from '../sql/sql.ts';
import type { StreamId } from '../stream-id.ts';
import type { Batch, Chain } from './append-batch.ts';
import { insert } from './append-statement.ts';
import type { DatabaseClock } from './database-clock.ts';
import { POSTGRES } from './dialect.ts';
import { lookUp } from './look-up.ts';
import { prepared } from './session.ts';

/** Together with the wait of a decision for its append (pipeline.ts) and the clock difference, this is less than auditors allow. */
const ACCOUNT_CHANGE_MS_MAX = 2_000;

/** The number of statements that search for competitors after one was found. */
const SEARCHES_AFTER_CONFLICT = 64;

interface AppenderOptions {
  readonly logId: string;
  readonly damagedStreams: DamagedStreams;
  readonly chamberIdMin: number;
  readonly clock: Pick<DatabaseClock, 'now'>;
}

interface Attempt {
  /** An earlier attempt may have been committed. */
  readonly isRepeated: boolean;
  readonly accountsUntil: Millis;
  readonly withheldThrough: number | undefined;
}

/** The part of a batch that was not written. */
interface Rejected {
  readonly streams: ReadonlySet<StreamId>;
  /** The signatures of registrations that were already stored. */
  readonly known: readonly string[];
  /** Whether the batch was decided before a withholding that this process has not noticed. */
  readonly isOutdated: boolean;
}

interface Appended extends AppendResult {
  /** Whether the batch was decided before a withholding. Then all of its streams are conflicts. */
  readonly isOutdated?: true;
}

export class Appender {
  readonly #options: AppenderOptions;
  #searchesLeft = 0;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** Returns a function that attempts to append the batch. */
  begin(batch: AppendBatch): (client: pg.Client, isRepeated?: boolean) => Promise<Appended> {
    const accountsUntil = this.#options.clock.now() + ACCOUNT_CHANGE_MS_MAX;
    return (client, isRepeated = false) =>
      this.#append(client, batch, { isRepeated, accountsUntil, withheldThrough: batch.withheldThrough });
  }

  async #append(client: pg.Client, batch: AppendBatch, attempt: Attempt): Promise<Appended> {
    const { entries, registrations = [], heads = NO_HEADS, signatures = [] } = batch;
    const isEmpty = entries.length + registrations.length === 0;
    const rejected = isEmpty ? NONE_REJECTED : await this.#write(client, { entries, registrations }, attempt);
    const hasWritten = entries.some(({ stream }) => !rejected.streams.has(stream));
    const open = rejected.streams.size + rejected.known.length + heads.size + signatures.length;
    if (open === 0 && !attempt.isRepeated) return ALL_WRITTEN;
    const result = await this.#explain(client, batch, {
      ...rejected,
      confirmsHeads: attempt.isRepeated || !hasWritten,
    });
    return rejected.isOutdated ? { ...result, isOutdated: true } : result;
  }

  async #write(client: pg.Client, batch: Batch, { isRepeated, ...attempt }: Attempt): Promise<Rejected> {
    const streams = new Set<StreamId>();
    const known: string[] = [];
    let remaining: Batch = { ...batch, entries: inOrder(batch.entries) };
    for (;;) {
      const searchesFirst = isRepeated || this.#searchesLeft > 0;
      try {
        const { lost, isOutdated } = await insert(client, remaining, { ...this.#options, ...attempt, searchesFirst });
        this.#searchesLeft = lost.length > 0 ? SEARCHES_AFTER_CONFLICT : Math.max(0, this.#searchesLeft - 1);
        const isOurs = isRepeated && lost.length > 0 ? await findWritten(client, lost) : new Set<LogEntry>();
        const rejected = lost.filter((chain) => !chain.every((entry) => isOurs.has(entry)));
        for (const { stream } of rejected.flat()) streams.add(stream);
        return { streams, known, isOutdated };
      } catch (error) {
        const constraint = error instanceof pg.DatabaseError ? error.constraint : undefined;
        if (constraint === 'registrations_pkey') {
          const signatures = await this.#knownRegistrations(client, remaining.registrations);
          // Two registrations of the batch have the same signature. The caller is at fault, and every retry would fail.
          if (signatures.size === 0) throw error;
          known.push(...signatures);
          const { rest, removed } = without(remaining, signatures);
          remaining = rest;
          for (const stream of removed) streams.add(stream);
        } else if (!searchesFirst && (constraint === 'events_pkey' || constraint === 'events_by_signature')) {
          this.#searchesLeft = SEARCHES_AFTER_CONFLICT;
        } else throw error;
      }
    }
  }

  async #knownRegistrations(client: pg.Client, registrations: readonly Registration[]): Promise<ReadonlySet<string>> {
    const signatureKeys = registrations.flatMap(({ signature }) => signature ?? []);
    const { found } = await lookUp(client, { streams: [], signatureKeys }, this.#options.damagedStreams);
    return new Set(found.keys());
  }

  /** Reads the heads of the rejected streams and of the batch's `heads`, and the stored lines of known signatures. */
  async #explain(
    client: pg.Client,
    { entries, heads = NO_HEADS, signatures = [] }: AppendBatch,
    { streams, known, confirmsHeads }: Rejected & { readonly confirmsHeads: boolean },
  ): Promise<AppendResult> {
    const lost = entries.filter(({ stream }) => streams.has(stream));
    const accounts = lost.flatMap(({ account }) => account?.did ?? []);
    const keys = lost.flatMap(({ signature }) => signature ?? []);
    const created = lost.some(isCreation) ? [ALL_CHAMBERS] : [];
    const asked = {
      streams: [...new Set([...streams, ...accounts, ...heads.keys(), ...created])],
      signatureKeys: [...signatures, ...keys, ...known],
      confirmsHeads,
    };
    const { heads: latest, found } = await lookUp(client, asked, this.#options.damagedStreams);
    const lowest = this.#options.chamberIdMin - 1;
    const headOf = (stream: StreamId) => Math.max(latest.get(stream) ?? 0, stream === ALL_CHAMBERS ? lowest : 0);
    const conflicts = new Map<StreamId, number>();
    for (const stream of [...streams, ...created]) conflicts.set(stream, headOf(stream));
    // The head of an account that the batch extended has changed because of the batch.
    const written = new Set(entries.map(({ stream }) => stream));
    for (const { account } of lost) {
      if (!account || written.has(account.did) || headOf(account.did) === account.lastEventId) continue;
      conflicts.set(account.did, headOf(account.did));
    }
    for (const [stream, head] of heads) if (headOf(stream) !== head) conflicts.set(stream, headOf(stream));
    return { conflicts, found };
  }
}

const NO_HEADS: ReadonlyMap<StreamId, number> = new Map();
const NONE_REJECTED: Rejected = { streams: new Set(), known: [], isOutdated: false };
const ALL_WRITTEN: Appended = { conflicts: new Map(), found: new Map() };

/** Sorts entries in the same order on every node: chambers by id, then accounts. Entries of a stream stay in order. */
function inOrder(entries: readonly LogEntry[]): readonly LogEntry[] {
  return [...entries].sort(({ stream: one }, { stream: other }) => {
    if (typeof one !== typeof other) return typeof one === 'number' ? -1 : 1;
    return one < other ? -1 : Number(one > other);
  });
}

/** Removes the registrations with these signatures, and the entries of their accounts. */
function without({ entries, registrations }: Batch, signatures: ReadonlySet<string>) {
  const isKnown = ({ signature }: Registration) => signature !== null && signatures.has(signature);
  const dids = new Set<StreamId>(registrations.filter(isKnown).map(({ did }) => did));
  const removed = new Set(entries.flatMap(({ stream }) => (dids.has(stream) ? [stream] : [])));
  const rest: Batch = {
    entries: entries.filter(({ stream }) => !removed.has(stream)),
    registrations: registrations.filter((each) => !isKnown(each) && !removed.has(each.did)),
  };
  return { rest, removed };
}

/** Returns the entries of these chains that are stored with the same lines. */
async function findWritten(client: pg.Client, chains: readonly Chain[]): Promise<ReadonlySet<LogEntry>> {
  const entries = chains.flat();
  const rows = entries.map(({ stream, eventId, line }) => ({ stream: String(stream), event_id: eventId, line }));
  const { rows: same } = await client.query<{ readonly place: number }>(prepared(SAME_LINES, [jsonRows(LINE, rows)]));
  return new Set(same.map(({ place }) => entries[Number(place)] as LogEntry));
}

const LINE: Columns = { stream: 'text', event_id: 'integer', line: 'bytes' };
const SAME_LINES = `SELECT listed.place FROM ${POSTGRES.listed('$1', LINE)} JOIN events USING (stream, event_id, line)`;
