// A batch as one statement. Why any number of nodes may run it at once:
//
// 1. A stream's rows are written as a chain. The lead, its first entry in the batch, is inserted only if the event before it is
//    there and its own key (stream, event_id) is free; the rest follow only if the lead was inserted. So events have no gaps,
//    and of two nodes that extend a stream from the same event one wins: the other waits for it on the primary key, writes
//    nothing of the stream and reports a conflict.
// 2. The chambers that a batch creates are one chain, by id: the lead must follow the highest chamber, so ids have no gaps and
//    rise in the order of the commits.
// 3. A signature is accepted once: its index is unique, and a chain with a known one is not inserted. A signature belongs to one
//    stream, so one that becomes known meanwhile is that of a competitor, who has taken the lead's key.
// 4. Nothing deadlocks. Only leads wait, and every node inserts them in the same order; what follows a lead can't meet a
//    competitor, who would need that lead. After the events, rows of registrations and contacts are written in order of their keys.
// 5. An append whose result was lost is resolved by the very same append: its leads wait for the first attempt as for any
//    competitor. If rows are there then and hold the same lines, the first attempt has succeeded.
// 6. What a lease's holder decided is written only while it is the holder: the statement locks the lease's row against a new
//    holder, or waits for one and writes nothing. So a new holder sees all that was written before it, and nothing comes after.
// 7. A move is decided on its signer's account too. Its lead is inserted only if no event follows the one that the decision read.
//    So a move may be decided without a look at the log: what is written was decided on heads.
// 8. A registration that changes nothing has no event to compete with: it is remembered only if no event follows the head that it was
//    decided on. If another one remembered its signature first, the statement fails whole, and is run again without the account.
// 9. To search for competitors before a row is inserted costs the server an eighth of its time, and there are hardly any if each chamber
//    is used at one node. So a statement fails for the first one that it meets, and is run again with the search.
// 10. What a response rests on is on the synchronous standbys. Rows are visible before that if their backend ended while it waited. A batch
//     that writes an event confirms, by its commit, that event and all that its decisions have read. The look-up confirms the rest: the
//     lines of repeated signatures, and the heads of a batch that has written nothing or is repeated.
// 11. Auditors allow 5 s between a change of an account and a later move that was decided without it. So a change is not written once it is
//     ACCOUNT_CHANGE_MS_MAX old, by the database's clock. From then on until its commit has ended, as long as that may take, it holds a
//     lock of its account, which a move must be able to share: a change that is not visible yet lets no move pass.
// 12. Nothing is written to another log: the statement reads the database's logId.
import pg from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import type { Damages } from '../damage.ts';
import { ALL_CHAMBERS, type AppendBatch, type AppendResult, type LogEntry, type Registration } from '../log.ts';
import type { StreamId } from '../stream-id.ts';
import { type Batch, type Chain, insert, isCreation } from './append-statement.ts';
import { bigintArray, byteaArray, textArray } from './arrays.ts';
import type { DatabaseClock } from './database-clock.ts';
import { lookUp } from './look-up.ts';

/** With what a decision waits for its append (pipeline.ts) and clocks that are apart, less than what auditors allow. */
const ACCOUNT_CHANGE_MS_MAX = 2_000;

/** The number of statements that search for competitors after one was met. */
const SEARCHES = 64;

interface AppenderOptions {
  readonly logId: string;
  readonly damages: Damages;
  /** The lowest id of a new chamber. */
  readonly chamberIdMin: number;
  readonly clock: Pick<DatabaseClock, 'now'>;
}

export class Appender {
  readonly #options: AppenderOptions;
  #searchesLeft = 0;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** Returns an attempt to append the batch. `isRepeated`: an earlier one may have been committed. */
  begin(batch: AppendBatch): (client: pg.Client, isRepeated?: boolean) => Promise<AppendResult> {
    const accountsUntil = this.#options.clock.now() + ACCOUNT_CHANGE_MS_MAX;
    return (client, isRepeated = false) => this.#append(client, batch, { isRepeated, accountsUntil });
  }

  async #append(client: pg.Client, batch: AppendBatch, attempt: Attempt): Promise<AppendResult> {
    const { isRepeated } = attempt;
    const { entries, registrations = [], heads = NO_HEADS, signatures = [] } = batch;
    const isEmpty = entries.length + registrations.length === 0;
    const left = isEmpty ? NOTHING_LEFT : await this.#write(client, { entries, registrations }, attempt);
    const hasWritten = entries.some(({ stream }) => !left.conflicts.has(stream));
    if (!isRepeated && left.conflicts.size + left.known.length + heads.size + signatures.length === 0)
      return ALL_WRITTEN;
    return this.#explain(client, batch, { ...left, confirmsHeads: isRepeated || !hasWritten });
  }

  async #write(client: pg.Client, batch: Batch, { isRepeated, accountsUntil }: Attempt): Promise<Left> {
    const conflicts = new Set<StreamId>();
    const known: string[] = [];
    const remaining: Batch = { entries: inOrder(batch.entries), registrations: inOrderOfKeys(batch.registrations) };
    for (;;) {
      const isSearch = isRepeated || this.#searchesLeft > 0;
      try {
        const lost = await insert(client, remaining, { ...this.#options, isSearch, accountsUntil });
        this.#searchesLeft = lost.length > 0 ? SEARCHES : Math.max(0, this.#searchesLeft - 1);
        const isOurs = isRepeated && lost.length > 0 ? await findWritten(client, lost) : new Set<LogEntry>();
        for (const chain of lost) {
          if (!chain.every((entry) => isOurs.has(entry))) for (const { stream } of chain) conflicts.add(stream);
        }
        return { conflicts, known };
      } catch (error) {
        const constraint = error instanceof pg.DatabaseError ? error.constraint : undefined;
        if (constraint === 'registrations_pkey') {
          const forgotten = await forgetKnownRegistrations(client, remaining);
          // Two of the batch have one signature, a defect of the caller: it would fail again for ever.
          if (forgotten.signatures.length === 0) throw error;
          for (const did of forgotten.conflicts) conflicts.add(did);
          known.push(...forgotten.signatures);
        } else if (!isSearch && (constraint === 'events_pkey' || constraint === 'events_by_signature')) {
          this.#searchesLeft = SEARCHES;
        } else throw error;
      }
    }
  }

  /** Finds where the streams in conflict and the batch's heads are, and the lines that signatures led to earlier. */
  async #explain(
    client: pg.Client,
    { entries, heads = NO_HEADS, signatures = [] }: AppendBatch,
    { conflicts, known, confirmsHeads }: Left & { readonly confirmsHeads: boolean },
  ): Promise<AppendResult> {
    const lost = entries.filter(({ stream }) => conflicts.has(stream));
    const accounts = lost.flatMap(({ account }) => account?.did ?? []);
    const keys = lost.flatMap(({ signature }) => signature ?? []);
    const asked = {
      streams: [...new Set([...conflicts, ...accounts, ...heads.keys()])].filter((stream) => stream !== ALL_CHAMBERS),
      signatureKeys: [...signatures, ...keys, ...known],
      confirmsHeads,
    };
    const { lastEventIds, found, ...last } = await lookUp(client, asked, this.#options.damages);
    const lastChamberId = Math.max(last.lastChamberId, this.#options.chamberIdMin - 1);
    const headOf = (stream: StreamId) => (stream === ALL_CHAMBERS ? lastChamberId : (lastEventIds.get(stream) ?? 0));
    const moved = new Map<StreamId, number>();
    for (const stream of conflicts) moved.set(stream, headOf(stream));
    // The head of an account that this batch has extended is its own.
    const written = new Set(entries.map(({ stream }) => stream));
    for (const entry of lost) {
      if (isCreation(entry)) moved.set(ALL_CHAMBERS, lastChamberId);
      const { account } = entry;
      if (!account || written.has(account.did) || headOf(account.did) === account.lastEventId) continue;
      moved.set(account.did, headOf(account.did));
    }
    for (const [stream, head] of heads) if (headOf(stream) !== head) moved.set(stream, headOf(stream));
    return { moved, found };
  }
}

interface Attempt {
  readonly isRepeated: boolean;
  readonly accountsUntil: Millis;
}

const NO_HEADS: ReadonlyMap<StreamId, number> = new Map();

/** What was not written of a batch. */
interface Left {
  readonly conflicts: ReadonlySet<StreamId>;
  /** The signatures of registrations that were remembered before. */
  readonly known: readonly string[];
}

const NOTHING_LEFT: Left = { conflicts: new Set(), known: [] };
const ALL_WRITTEN: AppendResult = { moved: new Map(), found: new Map() };

/** The same in every node: chambers by id, then accounts; a stream's entries stay in their order. */
function inOrder(entries: readonly LogEntry[]): readonly LogEntry[] {
  return [...entries].sort(({ stream: one }, { stream: other }) => {
    if (typeof one !== typeof other) return typeof one === 'number' ? -1 : 1;
    return one < other ? -1 : Number(one > other);
  });
}

function inOrderOfKeys(registrations: readonly Registration[]): readonly Registration[] {
  const keyOf = ({ did, signature }: Registration) => `${signature ?? ''} ${did}`;
  return [...registrations].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

/** The entries of these chains whose rows hold the same lines. */
async function findWritten(client: pg.Client, chains: readonly Chain[]): Promise<ReadonlySet<LogEntry>> {
  const entries = chains.flat();
  const { rows } = await client.query<{ readonly place: string }>(
    `SELECT place FROM unnest($1::text[], $2::bigint[], $3::bytea[]) WITH ORDINALITY AS b (stream, event_id, line, place)
     WHERE line = (SELECT line FROM events e WHERE e.stream = b.stream AND e.event_id = b.event_id)`,
    [
      textArray(entries.map(({ stream }) => String(stream))),
      bigintArray(entries.map(({ eventId }) => eventId)),
      byteaArray(entries.map(({ line }) => line)),
    ],
  );
  return new Set(rows.map(({ place }) => entries[Number(place) - 1] as LogEntry));
}

/** Takes known registrations out of the batch, and the accounts that it would extend for them; returns both. */
async function forgetKnownRegistrations(client: pg.Client, batch: Batch) {
  const hashOf = ({ signature }: Registration) => (signature === null ? null : Buffer.from(signature, 'latin1'));
  const { rows } = await client.query<{ signature_hash: Buffer }>(
    'SELECT signature_hash FROM registrations WHERE signature_hash = ANY ($1::bytea[])',
    [byteaArray(batch.registrations.map(hashOf))],
  );
  const known = new Set(rows.map((row) => row.signature_hash.toString('latin1')));
  const isKnown = ({ signature }: Registration) => signature !== null && known.has(signature);
  const dids = new Set<StreamId>(batch.registrations.filter(isKnown).map(({ did }) => did));
  const conflicts = new Set(batch.entries.flatMap(({ stream }) => (dids.has(stream) ? [stream] : [])));
  batch.registrations = batch.registrations.filter((each) => !isKnown(each) && !conflicts.has(each.did));
  batch.entries = batch.entries.filter(({ stream }) => !conflicts.has(stream));
  return { conflicts, signatures: [...known] };
}
