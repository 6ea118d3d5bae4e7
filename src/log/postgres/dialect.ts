// PostgreSQL's dialect of the shared SQL.
import type { ColumnType, Dialect } from '../sql/sql.ts';

/** Text is compared bytewise, as in SQLite. */
const TYPES: Readonly<Record<ColumnType, string>> = {
  integer: 'bigint',
  text: 'text COLLATE "C"',
  boolean: 'boolean',
  bytes: 'bytea',
  json: 'text',
};

export const POSTGRES: Dialect = {
  types: TYPES,
  tableOptions: () => '',
  indexes: [
    'chambers_in_lobby ON chambers (lobby_deadline) WHERE NOT is_committed',
    'chambers_in_proposal ON chambers (proposal_deadline) WHERE NOT is_committed',
    'chambers_in_debate ON chambers (debate_deadline) WHERE NOT is_committed',
    'chambers_in_commit ON chambers (allocate_commit_deadline) WHERE NOT is_committed',
  ],
  listed: (parameter, columns) => {
    const names = Object.keys(columns);
    const types = Object.entries(columns).map(([name, type]) => `${name} ${type === 'bytes' ? 'text' : TYPES[type]}`);
    const values = names.map((name) => (columns[name] === 'bytes' ? `decode(${name}, 'hex') AS ${name}` : name));
    return `(SELECT place - 1 AS place, ${values.join(', ')} FROM ROWS FROM (json_to_recordset(${parameter}::json)
      AS (${types.join(', ')})) WITH ORDINALITY AS rows (${names.join(', ')}, place)) AS listed`;
  },
  streamKey: String,
  streamOf: (column) => column,
  lineOf: (parameter) => parameter,
  chamberKey: (column) => `${column}::text`,
  lines: 'events AS lines',
  places: 'places',
  placedLines: '(SELECT place, events.* FROM places JOIN events USING (stream, event_id)) AS lines',
};
