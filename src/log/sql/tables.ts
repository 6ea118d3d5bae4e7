// The tables of a log except `events`, which each driver defines. Derived tables serve lists and look-ups without folding every chamber:
// they contain the columns that queries search and sort by, and the result as JSON. The lines determine each row byte for byte, so a rebuild
// produces the same rows.
import type {
  ChamberListing,
  IdeaListing,
  Listing,
  MemberListing,
  TurnListing,
} from '../../../projections/listings.ts';
import { encodeChamber, encodeIdea, encodeTurns } from './listing-json.ts';
import type { Column, Columns, ColumnType, Dialect, SqlValue, Table } from './sql.ts';

export type Row = Readonly<Record<string, SqlValue>>;

/** Agents' texts are stored only in JSON, which escapes U+0000, because PostgreSQL's text can't contain it. */
interface DerivedTable<Listed> extends Table {
  readonly toRow: (listing: Listed) => Row;
}

const CHAMBERS = table({
  name: 'chambers',
  key: ['chamber_id'],
  columns: {
    chamber_id: 'integer',
    creator_did: 'text',
    lobby_deadline: 'integer',
    proposal_deadline: 'integer',
    debate_deadline: 'integer',
    allocate_commit_deadline: 'integer',
    allocate_reveal_deadline: 'integer',
    is_committed: 'boolean',
    is_settled: 'boolean',
    listing: 'json',
  },
  toRow: (chamber: ChamberListing) => ({
    chamber_id: chamber.chamberId,
    creator_did: chamber.creatorDid,
    lobby_deadline: chamber.ends.lobbyDeadline,
    proposal_deadline: chamber.ends.proposalDeadline,
    debate_deadline: chamber.ends.debateDeadline,
    allocate_commit_deadline: chamber.ends.allocateCommitDeadline,
    allocate_reveal_deadline: chamber.ends.allocateRevealDeadline,
    is_committed: chamber.isCommitted,
    is_settled: chamber.isSettled,
    listing: encodeChamber(chamber),
  }),
});

const IDEAS = table({
  name: 'ideas',
  key: ['chamber_id', 'slot'],
  columns: {
    chamber_id: 'integer',
    slot: 'integer',
    ticker: 'text',
    creator_did: 'text',
    proposed_at: 'integer',
    graduated_at: 'text or null',
    view: 'json',
  },
  toRow: ({ idea, proposedAt }: IdeaListing) => ({
    chamber_id: idea.chamberId,
    slot: idea.slot,
    ticker: idea.ticker,
    creator_did: idea.creatorDid,
    proposed_at: proposedAt,
    graduated_at: idea.graduatedAt,
    view: encodeIdea(idea),
  }),
});

const MEMBERS = table({
  name: 'members',
  key: ['did', 'chamber_id'],
  columns: {
    did: 'text',
    chamber_id: 'integer',
    turn_order: 'integer or null',
    has_committed: 'boolean',
    has_revealed: 'boolean',
    is_open: 'boolean',
  },
  toRow: (member: MemberListing) => ({
    did: member.did,
    chamber_id: member.chamberId,
    turn_order: member.turnOrder,
    has_committed: member.hasCommitted,
    has_revealed: member.hasRevealed,
    // The store sets `is_open` to false when the chamber is committed. The row does not change after that.
    is_open: true,
  }),
});

const TURNS = table({
  name: 'turns',
  key: ['chamber_id'],
  columns: { chamber_id: 'integer', turn: 'json' },
  toRow: ({ chamberId, turns }: TurnListing) => ({ chamber_id: chamberId, turn: encodeTurns(turns) }),
});

export const TABLES: { readonly [Kind in Listing['kind']]: DerivedTable<Extract<Listing, { readonly kind: Kind }>> } = {
  chamber: CHAMBERS,
  idea: IDEAS,
  member: MEMBERS,
  turns: TURNS,
};

export const DERIVED_TABLES: readonly string[] = Object.values(TABLES).map(({ name }) => name);

/** Each dialect adds indexes that its planner needs. */
const DERIVED_INDEXES = [
  'chambers_open_by_creator ON chambers (creator_did) WHERE NOT is_committed',
  'chambers_unsettled ON chambers (allocate_reveal_deadline, chamber_id) WHERE NOT is_settled',
  'chambers_settled ON chambers (allocate_reveal_deadline) WHERE is_settled',
  'chambers_committed ON chambers (chamber_id) WHERE is_committed',
  'ideas_by_ticker ON ideas (lower(ticker), graduated_at, proposed_at, chamber_id)',
  'ideas_graduated ON ideas (graduated_at, chamber_id, slot) WHERE graduated_at IS NOT NULL',
  'ideas_by_creator ON ideas (creator_did)',
  'members_by_turn ON members (chamber_id, turn_order)',
  'members_open ON members (did, chamber_id) WHERE is_open',
];

/** The folded states of streams, each after an event. Folding a cold stream continues from there. */
export const SNAPSHOTS = table({
  name: 'snapshots',
  key: ['stream'],
  columns: { stream: 'text', event_id: 'integer', version: 'integer', leaf: 'bytes', state: 'json', crc: 'integer' },
});

/** Hashed signatures of registrations. A line must not contain a signature that covers an e-mail address. */
export const REGISTRATIONS = table({
  name: 'registrations',
  key: ['signature_hash'],
  columns: { signature_hash: 'bytes', did: 'text', event_id: 'integer', covers_email: 'boolean' },
});

/**
 * The withheld lines, numbered 1, 2, 3 … in the order of withholding. `signature` is the withheldSignature of a request that was removed
 * with its line.
 */
export const WITHHELD = table({
  name: 'withheld',
  key: ['number'],
  columns: { number: 'integer', stream: 'text', event_id: 'integer', signature: 'bytes or null' },
});

export function createWithheld(dialect: Dialect): string {
  return `${createTable(dialect, WITHHELD)}
CREATE UNIQUE INDEX withheld_by_event ON withheld (stream, event_id);
CREATE UNIQUE INDEX withheld_by_signature ON withheld (signature) WHERE signature IS NOT NULL;`;
}

/** Personal data. */
export const CONTACTS = table({ name: 'contacts', key: ['did'], columns: { did: 'text', operator_email: 'bytes' } });

/** Personal data: callback URLs, and the hashed signatures of the requests that set them. */
export const CALLBACKS = table({
  name: 'callbacks',
  key: ['did'],
  columns: {
    did: 'text',
    url: 'text or null',
    since: 'integer',
    succeeded_at: 'integer or null',
    failures: 'integer',
    last_at: 'integer or null',
    last_status: 'integer or null',
    removed: 'text or null',
  },
});
export const CALLBACK_SIGNATURES = table({
  name: 'callback_signatures',
  key: ['created', 'signature_hash'],
  columns: { created: 'integer', signature_hash: 'bytes', did: 'text' },
});

export const META = table({ name: 'meta', key: ['name'], columns: { name: 'text', value: 'text' } });

/** Tiles of entries have level -1. */
export const TILES = table({
  name: 'tiles',
  key: ['level', 'tile'],
  columns: { level: 'integer', tile: 'integer', hashes: 'bytes' },
});

export const CHECKPOINTS = table({
  name: 'checkpoints',
  key: ['log_id'],
  columns: { log_id: 'text', size: 'integer', note: 'text' },
});

/** The tables whose rows a copy of the log keeps. */
export const KEPT_TABLES: readonly Table[] = [
  ...[META, REGISTRATIONS, WITHHELD, CONTACTS, CALLBACKS, CALLBACK_SIGNATURES, TILES, CHECKPOINTS],
];

export function rowOf(listing: Listing): Row {
  // TypeScript can't infer that a listing's kind selects the table of that kind.
  return (TABLES[listing.kind] as DerivedTable<Listing>).toRow(listing);
}

/** Collects rows for statements that may write each key only once. A later row replaces an earlier one with the same key. */
export class LatestRows {
  readonly #rows = new Map<Table, Map<string, Row>>();

  add(table: Table, row: Row): void {
    const rows = this.#rows.get(table) ?? new Map<string, Row>();
    this.#rows.set(table, rows.set(table.key.map((name) => row[name]).join(' '), row));
  }

  /** Sorted by table name, so that batches for the same tables share a statement. */
  byTable(): readonly (readonly [Table, readonly Row[]])[] {
    const written = [...this.#rows].map(([table, rows]) => [table, [...rows.values()]] as const);
    return written.sort(([one], [other]) => (one.name < other.name ? -1 : 1));
  }
}

export function createTable({ types, tableOptions }: Dialect, table: Table, kind = 'TABLE'): string {
  const { name, key, columns } = table;
  const lines = columns.map((column) => `${column.name} ${types[column.type]}${column.isNullable ? '' : ' NOT NULL'}`);
  return `CREATE ${kind} ${name} (\n  ${[...lines, `PRIMARY KEY (${key})`].join(',\n  ')}\n) ${tableOptions(table)};`;
}

export function createKeptTables(dialect: Dialect): string {
  return KEPT_TABLES.map((each) => (each === WITHHELD ? createWithheld(dialect) : createTable(dialect, each))).join(
    '\n',
  );
}

export function createDerivedTables(dialect: Dialect): string {
  const tables = [...Object.values(TABLES), SNAPSHOTS].map((each) => createTable(dialect, each));
  return [...tables, createDerivedIndexes(dialect)].join('\n');
}

export function createDerivedIndexes(dialect: Dialect): string {
  return [...DERIVED_INDEXES, ...dialect.indexes].map((index) => `CREATE INDEX ${index};`).join('\n');
}

/** Returns a statement that writes the rows of `source`, in column order, and replaces rows with the same key. */
export function upsert({ name, key, columns }: Table, source: string): string {
  const names = columns.map((column) => column.name);
  const changes = names.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  const action = changes.length > 0 ? `UPDATE SET ${changes}` : 'NOTHING';
  return `INSERT INTO ${name} (${names}) ${source} ON CONFLICT (${key}) DO ${action}`;
}

/** Returns a statement that upserts the rows in the first parameter. Without the WHERE, SQLite would parse ON CONFLICT as a join condition. */
export function insertListed(dialect: Dialect, table: Table): string {
  const columns = columnsOf(table);
  return upsert(table, `SELECT ${Object.keys(columns)} FROM ${dialect.listed('$1', columns)} WHERE true`);
}

export function columnsOf({ columns }: Table): Columns {
  return Object.fromEntries(columns.map(({ name, type }) => [name, type]));
}

interface Description extends Omit<Table, 'columns'> {
  readonly columns: Readonly<Record<string, ColumnType | `${ColumnType} or null`>>;
}

export function table<Described extends Description>({ columns, ...rest }: Described) {
  const described = Object.entries(columns).map(([name, description]): Column => {
    const [type, isNullable] = description.split(' or null');
    return { name, type: type as ColumnType, isNullable: isNullable !== undefined };
  });
  return { ...rest, columns: described };
}
