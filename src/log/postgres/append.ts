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
// 5. An append whose answer was lost is resolved by the very same append: its leads wait for the first attempt as for any
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
import { crc32 } from 'node:zlib';
import pg from 'pg';
import type { Damages } from '../damage.ts';
import { ALL_CHAMBERS, type AppendBatch, type AppendResult, type LogEntry, type Registration } from '../log.ts';
import type { StreamId } from '../stream-id.ts';
import { BIGINT, BYTEA, bigintArray, byteaArray, type ElementType, encode, LATIN1, TEXT, textArray } from './arrays.ts';
import { DERIVED_INSERTS, derivedRows } from './derived-rows.ts';
import { lookUp } from './look-up.ts';

/** So many statements search for competitors after one was met. */
const SEARCHES = 64;

export class Appender {
  readonly #damages: Damages;
  #searchesLeft = 0;

  constructor(damages: Damages) {
    this.#damages = damages;
  }

  /** `isRepeated`: an earlier attempt may have been committed. */
  async append(client: pg.Client, batch: AppendBatch, isRepeated: boolean): Promise<AppendResult> {
    const { entries, registrations = [], heads = NO_HEADS, signatures = [] } = batch;
    const isEmpty = entries.length + registrations.length === 0;
    const left = isEmpty ? NOTHING_LEFT : await this.#write(client, { entries, registrations }, isRepeated);
    const hasWritten = entries.some(({ stream }) => !left.conflicts.has(stream));
    if (!isRepeated && left.conflicts.size + left.known.length + heads.size + signatures.length === 0)
      return ALL_WRITTEN;
    return this.#explain(client, batch, { ...left, confirmsHeads: isRepeated || !hasWritten });
  }

  async #write(client: pg.Client, batch: Batch, isRepeated: boolean): Promise<Left> {
    const conflicts = new Set<StreamId>();
    const known: string[] = [];
    const remaining: Batch = { entries: inOrder(batch.entries), registrations: inOrderOfKeys(batch.registrations) };
    for (;;) {
      const isSearch = isRepeated || this.#searchesLeft > 0;
      try {
        const lost = await insert(client, remaining, isSearch);
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

  /** Where the streams in conflict and the batch's heads are, and the lines that signatures led to earlier. */
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
    const { lastEventIds, lastChamberId, found } = await lookUp(client, asked, this.#damages);
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

const NO_HEADS: ReadonlyMap<StreamId, number> = new Map();

/** Of a batch, what was not written. */
interface Left {
  readonly conflicts: ReadonlySet<StreamId>;
  /** The signatures of registrations that were remembered before. */
  readonly known: readonly string[];
}

const NOTHING_LEFT: Left = { conflicts: new Set(), known: [] };
const ALL_WRITTEN: AppendResult = { moved: new Map(), found: new Map() };

interface Batch {
  entries: readonly LogEntry[];
  registrations: readonly Registration[];
}

type Chain = readonly LogEntry[];

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

/** Runs the statement; returns the chains whose lead was not inserted. Without `isSearch` it fails for a competitor. */
async function insert(
  client: pg.Client,
  { entries, registrations }: Batch,
  isSearch: boolean,
): Promise<readonly Chain[]> {
  const chains = chainsOf(entries);
  const rows = rowsOf(chains);
  const written = [...derivedRows(rows), ...registrationRows(registrations, chains)];
  const parts: Part[] = written.map(([part]) => part);
  if (isSearch) parts.push('search');
  if (rows.some(({ lease }) => lease !== null)) parts.push('held');
  if (rows.some(({ entry }) => isCreation(entry))) parts.push('creation');
  // The server keeps 63 characters of a statement's name; three of each part tell them apart.
  const { rows: found } = await client.query<{ readonly lead: string }>({
    name: ['append', ...parts.map((part) => part.slice(0, 3))].join(' '),
    text: statementFor(parts),
    values: [...columnsFor(parts).map((column) => column.encode(rows)), ...written.map(([, json]) => json)],
  });
  const lost = new Set(found.map(({ lead }) => lead));
  return [...chains].filter(([lead]) => lost.has(lead)).map(([, chain]) => chain);
}

/** An entry as the statement takes it. */
interface Row {
  readonly entry: LogEntry;
  readonly lead: string;
  /** The event that has to be there before a chain's lead; null for the rest. */
  readonly before: Pick<LogEntry, 'stream' | 'eventId'> | null;
  readonly lease: string | null;
}

function rowsOf(chains: ReadonlyMap<string, Chain>): readonly Row[] {
  const rows: Row[] = [];
  for (const [lead, chain] of chains) {
    const { lease = null } = chain.find((entry) => entry.lease !== undefined) ?? {};
    for (const entry of chain)
      rows.push({ entry, lead, before: entry === chain[0] ? predecessor(entry) : null, lease });
  }
  return rows;
}

/** By the stream of their lead. */
function chainsOf(entries: readonly LogEntry[]): ReadonlyMap<string, LogEntry[]> {
  const chains = new Map<string, LogEntry[]>();
  const created = new Set<StreamId>();
  for (const entry of entries) {
    const { stream, eventId } = entry;
    if (typeof stream === 'number' && eventId === 1) created.add(stream);
    const [firstCreated] = created;
    const lead = String(created.has(stream) ? firstCreated : stream);
    const chain = chains.get(lead);
    if (chain === undefined) chains.set(lead, [entry]);
    else chain.push(entry);
  }
  return chains;
}

/** Number 0 of a stream is always there. */
function predecessor(lead: LogEntry): Pick<LogEntry, 'stream' | 'eventId'> {
  if (isCreation(lead) && lead.stream > 1) return { stream: lead.stream - 1, eventId: 1 };
  return { stream: lead.stream, eventId: lead.eventId - 1 };
}

function isCreation(entry: LogEntry): entry is LogEntry & { readonly stream: number } {
  return typeof entry.stream === 'number' && entry.eventId === 1;
}

function registrationRows(
  registrations: readonly Registration[],
  chains: ReadonlyMap<string, unknown>,
): readonly (readonly [table: 'registrations' | 'contacts', rows: string])[] {
  const hex = (text: string, encoding: BufferEncoding) => Buffer.from(text, encoding).toString('hex');
  const signed: object[] = [];
  const contacts = new Map<string, object>();
  for (const { did, eventId, signature, operatorEmail, unchangedAt = null } of registrations) {
    const lead = chains.has(did) ? did : null;
    const coversEmail = operatorEmail !== undefined;
    const key = { lead, did, unchangedAt };
    if (signature !== null) signed.push({ ...key, eventId, hash: hex(signature, 'latin1'), coversEmail });
    if (coversEmail) contacts.set(did, { ...key, email: hex(operatorEmail, 'utf8') });
  }
  const inOrderOfDids = [...contacts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, contact]) => contact);
  const tables = [
    ['registrations', signed],
    ['contacts', inOrderOfDids],
  ] as const;
  return tables.flatMap(([table, rows]) => (rows.length === 0 ? [] : [[table, JSON.stringify(rows)]]));
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

interface Column {
  readonly name: string;
  readonly type: string;
  readonly encode: (rows: readonly Row[]) => Buffer;
  /** Left out of other batches. */
  readonly only?: Part;
}

/** The functions are made once: V8 would compile those of each batch anew. */
function column<Value>(name: string, type: ElementType<Value>, read: (row: Row) => Value | null, only?: Part): Column {
  return { name, type: type.name, encode: (rows) => encode(type, rows.map(read)), ...(only && { only }) };
}

const EVENT_COLUMNS = [
  column('stream', TEXT, ({ entry }) => String(entry.stream)),
  column('event_id', BIGINT, ({ entry }) => entry.eventId),
  column('at', BIGINT, ({ entry }) => entry.at),
  column('line', BYTEA, ({ entry }) => entry.line),
  column('signature', LATIN1, ({ entry }) => entry.signature),
  column('nodes', BYTEA, ({ entry }) => entry.nodes),
  column('line_crc', BIGINT, ({ entry }) => crc32(entry.line)),
  column('nodes_crc', BIGINT, ({ entry: { nodes } }) => nodes && crc32(nodes)),
];
const EVENT = EVENT_COLUMNS.map(({ name }) => name).join(', ');

const COLUMNS = [
  ...EVENT_COLUMNS,
  column('before_event', BIGINT, ({ before }) => before?.eventId ?? null),
  column('account', TEXT, ({ entry }) => entry.account?.did ?? null),
  column('account_event', BIGINT, ({ entry }) => entry.account?.lastEventId ?? null),
  // Without a creation, both are the stream.
  column('lead', TEXT, ({ lead }) => lead, 'creation'),
  column('before_stream', TEXT, ({ before }) => before && String(before.stream), 'creation'),
  column('lease', TEXT, ({ lease }) => lease, 'held'),
];

function columnsFor(parts: readonly Part[]): readonly Column[] {
  return COLUMNS.filter(({ only }) => only === undefined || parts.includes(only));
}

const LOST = 'lead IN (SELECT lead FROM lost)';
const WON = 'IN (SELECT stream FROM written)';

/** Returns the leads that were not inserted. Only what a batch needs: each part costs the server as much as an event. */
function statementFor(parts: readonly Part[]): string {
  const only = (part: Part, text: string) => (parts.includes(part) ? text : '');
  const columns = columnsFor(parts);
  const written = parts.filter((part) => part in INSERTS) as readonly WrittenPart[];
  const inserts = written.map((part, index) => `, ${INSERTS[part](`$${columns.length + 1 + index}`, WON)}`);
  return `
WITH batch AS MATERIALIZED (
  SELECT *${parts.includes('creation') ? '' : ', stream AS lead, stream AS before_stream'}
  FROM unnest(${columns.map(({ type }, index) => `$${index + 1}::${type}[]`).join(', ')})
    WITH ORDINALITY AS rows (${columns.map(({ name }) => name).join(', ')}, place)
)${only('held', HELD)}, lost AS MATERIALIZED (
  SELECT lead FROM batch
  WHERE (SELECT event_id FROM events AS e WHERE e.stream = account AND e.event_id = account_event + 1) IS NOT NULL
    OR before_event > 0 AND (SELECT event_id FROM events AS e WHERE e.stream = before_stream AND e.event_id = before_event) IS NULL
    ${only('held', 'OR lease IS NOT NULL AND lease NOT IN (SELECT holder FROM held)')}
    ${only('search', 'OR (SELECT event_id FROM events AS e WHERE e.signature = batch.signature) IS NOT NULL')}
), written AS (
  INSERT INTO events (${EVENT})
  SELECT ${EVENT} FROM batch WHERE NOT ${LOST} ${only('search', 'AND before_event IS NOT NULL')}
  ORDER BY place
  ${only('search', 'ON CONFLICT DO NOTHING')}
  RETURNING stream
)${only('search', REST)}, without_place AS (
  INSERT INTO unplaced_events SELECT stream, event_id FROM batch WHERE lead ${WON} ORDER BY place
)${inserts.join('')}
SELECT lead FROM ${parts.includes('search') ? `batch WHERE NOT lead ${WON}` : 'lost'}`;
}

const HELD = `, held AS MATERIALIZED (
  SELECT holder FROM leases WHERE holder IN (SELECT lease FROM batch) FOR SHARE
)`;

/** What follows a lead, whose key may be taken. */
const REST = `, rest AS (
  INSERT INTO events (${EVENT})
  SELECT ${EVENT} FROM batch WHERE before_event IS NULL AND lead ${WON} ORDER BY place
)`;

const IS_UNCHANGED = `lead IS NULL AND (SELECT event_id FROM events AS e WHERE e.stream = did AND e.event_id = "unchangedAt" + 1) IS NULL`;

const INSERTS = {
  ...DERIVED_INSERTS,
  registrations: (rows: string, won: string) => `new_registrations AS (
  INSERT INTO registrations SELECT decode(hash, 'hex'), did, "eventId", "coversEmail"
  FROM json_to_recordset(${rows}::json) AS rows (lead text, did text, "unchangedAt" bigint, "eventId" bigint, hash text,
    "coversEmail" boolean)
  WHERE lead ${won} OR ${IS_UNCHANGED}
)`,
  contacts: (rows: string, won: string) => `new_contacts AS (
  INSERT INTO contacts SELECT did, decode(email, 'hex')
  FROM json_to_recordset(${rows}::json) AS rows (lead text, did text, "unchangedAt" bigint, email text)
  WHERE lead ${won} OR ${IS_UNCHANGED}
  ON CONFLICT (did) DO UPDATE SET operator_email = excluded.operator_email
)`,
} as const;

type WrittenPart = keyof typeof INSERTS;
type Part = WrittenPart | 'search' | 'held' | 'creation';
