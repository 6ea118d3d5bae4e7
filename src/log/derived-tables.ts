// The derived tables, the same in every store: what lists and look-ups need without folding every chamber. A row has the columns
// that queries search and sort by, and what they return as JSON. The lines alone determine it, to the byte, so a rebuild yields
// the same rows.
import type { ChamberListing, IdeaListing, Listing, MemberListing, TurnListing } from '../../projections/listings.ts';
import { encodeChamber, encodeTurns } from './listing-json.ts';

export type ColumnValue = string | number | boolean | null;

/** Texts of agents are in JSON only, which escapes U+0000: PostgreSQL's text can't hold it. */
type ColumnType = 'bigint' | 'text' | 'boolean' | 'json';

interface Column<Row> {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
  readonly read: (row: Row) => ColumnValue;
}

interface DerivedTable<Row> {
  readonly name: DerivedTableName;
  readonly key: readonly string[];
  readonly columns: readonly Column<Row>[];
}

export type DerivedTableName = 'chambers' | 'ideas' | 'members' | 'turns';

const NULLABLE = true;

const CHAMBERS = table<ChamberListing>('chambers', ['chamber_id'], {
  chamber_id: ['bigint', (row) => row.chamberId],
  creator_did: ['text', (row) => row.creatorDid],
  lobby_deadline: ['bigint', (row) => row.ends.lobbyDeadline],
  proposal_deadline: ['bigint', (row) => row.ends.proposalDeadline],
  debate_deadline: ['bigint', (row) => row.ends.debateDeadline],
  allocate_commit_deadline: ['bigint', (row) => row.ends.allocateCommitDeadline],
  allocate_reveal_deadline: ['bigint', (row) => row.ends.allocateRevealDeadline],
  is_committed: ['boolean', (row) => row.isCommitted],
  is_settled: ['boolean', (row) => row.isSettled],
  listing: ['json', encodeChamber],
});

const IDEAS = table<IdeaListing>('ideas', ['chamber_id', 'slot'], {
  chamber_id: ['bigint', ({ idea }) => idea.chamberId],
  slot: ['bigint', ({ idea }) => idea.slot],
  ticker: ['text', ({ idea }) => idea.ticker],
  creator_did: ['text', ({ idea }) => idea.creatorDid],
  proposed_at: ['bigint', (row) => row.proposedAt],
  graduated_at: ['text', ({ idea }) => idea.graduatedAt, NULLABLE],
  view: ['json', ({ idea }) => JSON.stringify(idea)],
});

const MEMBERS = table<MemberListing>('members', ['did', 'chamber_id'], {
  did: ['text', (row) => row.did],
  chamber_id: ['bigint', (row) => row.chamberId],
  turn_order: ['bigint', (row) => row.turnOrder, NULLABLE],
  has_committed: ['boolean', (row) => row.hasCommitted],
  has_revealed: ['boolean', (row) => row.hasRevealed],
  // False once the chamber is committed: the store closes all its members then, and no row of theirs changes any more.
  is_open: ['boolean', () => true],
});

const TURNS = table<TurnListing>('turns', ['chamber_id'], {
  chamber_id: ['bigint', (row) => row.chamberId],
  turn: ['json', (row) => encodeTurns(row.turns)],
});

export const TABLES: { readonly [Kind in Listing['kind']]: DerivedTable<Extract<Listing, { readonly kind: Kind }>> } = {
  chamber: CHAMBERS,
  idea: IDEAS,
  member: MEMBERS,
  turns: TURNS,
};

export const DERIVED_TABLES: readonly DerivedTableName[] = Object.values(TABLES).map(({ name }) => name);

/** Indexes that both stores need; each adds those that fit its planner. */
const INDEXES = [
  'chambers_open_by_creator ON chambers (creator_did) WHERE NOT is_committed',
  'chambers_unsettled ON chambers (allocate_reveal_deadline, chamber_id) WHERE NOT is_settled',
  'chambers_settled ON chambers (allocate_reveal_deadline) WHERE is_settled',
  'ideas_by_ticker ON ideas (lower(ticker), graduated_at, proposed_at, chamber_id)',
  'ideas_graduated ON ideas (graduated_at, chamber_id, slot) WHERE graduated_at IS NOT NULL',
  'members_by_turn ON members (chamber_id, turn_order)',
];

/** The columns of a listing's row, in their order. */
export function valuesOf(listing: Listing): readonly ColumnValue[] {
  // TypeScript does not see that a listing's kind leads to the table of that kind.
  const { columns } = TABLES[listing.kind] as DerivedTable<Listing>;
  return columns.map(({ read }) => read(listing));
}

export interface ColumnTypes extends Readonly<Record<ColumnType, string>> {
  /** What follows the columns of a table with so many key columns. */
  readonly options: (keyColumns: number) => string;
}

/** `schema` is empty, or the name of the schema for the tables with a dot. */
export function createDerivedTables(types: ColumnTypes, schema = ''): string {
  const tables = Object.values(TABLES).map(({ name, key, columns }) => {
    const lines = columns.map(
      (column) => `${column.name} ${types[column.type]}${column.isNullable ? '' : ' NOT NULL'}`,
    );
    return `CREATE TABLE ${schema}${name} (\n  ${[...lines, `PRIMARY KEY (${key})`].join(',\n  ')}\n) ${types.options(key.length)};`;
  });
  return [...tables, ...INDEXES.map((index) => `CREATE INDEX ${schema}${index};`)].join('\n');
}

/** Writes rows that `source` selects or lists, in the order of the columns. */
export function upsert(kind: Listing['kind'], source: string): string {
  const { name, key, columns } = TABLES[kind];
  const names = columns.map((column) => column.name);
  const changes = names.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO ${name} (${names}) ${source} ON CONFLICT (${key}) DO UPDATE SET ${changes}`;
}

/** Selects the chambers whose rows differ between two schemas. */
export function selectDifferences(name: DerivedTableName, stored: string, rebuilt: string): string {
  const [one, other] = [`SELECT * FROM ${stored}.${name}`, `SELECT * FROM ${rebuilt}.${name}`];
  return `SELECT DISTINCT chamber_id FROM (
    SELECT * FROM (${one} EXCEPT ${other}) AS stored UNION ALL SELECT * FROM (${other} EXCEPT ${one}) AS rebuilt) AS rows`;
}

function table<Row>(
  name: DerivedTableName,
  key: readonly string[],
  columns: Readonly<Record<string, readonly [ColumnType, Column<Row>['read'], isNullable?: boolean]>>,
): DerivedTable<Row> {
  return {
    name,
    key,
    columns: Object.entries(columns).map(([column, [type, read, isNullable = false]]) => ({
      name: column,
      type,
      isNullable,
      read,
    })),
  };
}
