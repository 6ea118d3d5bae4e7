// The derived tables, the same in every store: what lists and look-ups need without folding every chamber. A row has the columns
// that queries search and sort by, and what they return as JSON. The lines alone determine it, to the byte, so a rebuild yields
// the same rows.
import type { ChamberListing, IdeaListing, Listing, MemberListing, TurnListing } from '../../projections/listings.ts';
import { encodeChamber, encodeTurns } from './listing-json.ts';

export type ColumnValue = string | number | boolean | null;

/** The values of a row by the names of their columns. */
export type Row = Readonly<Record<string, ColumnValue>>;

/** Texts of agents are in JSON only, which escapes U+0000: PostgreSQL's text can't hold it. */
type ColumnType = 'bigint' | 'text' | 'boolean' | 'json';

interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
}

interface DerivedTable<Listed> {
  readonly name: DerivedTableName;
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  readonly toRow: (listing: Listed) => Row;
}

export type DerivedTableName = 'chambers' | 'ideas' | 'members' | 'turns';

const CHAMBERS = table({
  name: 'chambers',
  key: ['chamber_id'],
  columns: {
    chamber_id: 'bigint',
    creator_did: 'text',
    lobby_deadline: 'bigint',
    proposal_deadline: 'bigint',
    debate_deadline: 'bigint',
    allocate_commit_deadline: 'bigint',
    allocate_reveal_deadline: 'bigint',
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
    chamber_id: 'bigint',
    slot: 'bigint',
    ticker: 'text',
    creator_did: 'text',
    proposed_at: 'bigint',
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
    view: JSON.stringify(idea),
  }),
});

const MEMBERS = table({
  name: 'members',
  key: ['did', 'chamber_id'],
  columns: {
    did: 'text',
    chamber_id: 'bigint',
    turn_order: 'bigint or null',
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
    // False once the chamber is committed: the store closes all its members then, and no row of theirs changes any more.
    is_open: true,
  }),
});

const TURNS = table({
  name: 'turns',
  key: ['chamber_id'],
  columns: { chamber_id: 'bigint', turn: 'json' },
  toRow: ({ chamberId, turns }: TurnListing) => ({ chamber_id: chamberId, turn: encodeTurns(turns) }),
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

export function rowOf(listing: Listing): Row {
  // TypeScript does not see that a listing's kind leads to the table of that kind.
  return (TABLES[listing.kind] as DerivedTable<Listing>).toRow(listing);
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

interface Description<Listed, Name extends string> {
  readonly name: DerivedTableName;
  readonly key: readonly NoInfer<Name>[];
  readonly columns: Readonly<Record<Name, ColumnType | `${ColumnType} or null`>>;
  readonly toRow: (listing: Listed) => Readonly<Record<NoInfer<Name>, ColumnValue>>;
}

function table<Listed, Name extends string>({ columns, ...table }: Description<Listed, Name>): DerivedTable<Listed> {
  const described = Object.entries<string>(columns).map(([name, description]) => {
    const [type, isNullable] = description.split(' or null');
    return { name, type: type as ColumnType, isNullable: isNullable !== undefined };
  });
  return { ...table, columns: described };
}
