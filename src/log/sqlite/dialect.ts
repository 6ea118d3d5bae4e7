// The SQL that only SQLite has.
import type { ColumnType, Dialect } from '../sql/sql.ts';

const TYPES: Readonly<Record<ColumnType, string>> = {
  integer: 'INTEGER',
  text: 'TEXT',
  boolean: 'INTEGER',
  bytes: 'BLOB',
  json: 'TEXT',
};

/** A line is stored as text, so that other programs can read it, and returned as bytes, since a damaged one may be no text. */
const PLACED_LINES = `(SELECT position AS place, stream, event_id, at, CAST(line AS BLOB) AS line, signature, nodes, line_crc, nodes_crc
  FROM events)`;

export const SQLITE: Dialect = {
  types: TYPES,
  tableOptions: ({ key, columns }) =>
    key.length > 1 && !columns.some(({ type }) => type === 'bytes') ? 'STRICT, WITHOUT ROWID' : 'STRICT',
  // SQLite keeps no statistics by which it would choose between an index for each phase and the order of ids.
  indexes: [
    'chambers_open ON chambers (chamber_id, lobby_deadline, proposal_deadline, debate_deadline, allocate_commit_deadline) WHERE NOT is_committed',
  ],
  listed: (parameter, columns) => {
    const values = Object.entries(columns).map(([name, type]) => {
      const value = `value ->> '${name}'`;
      return `${type === 'bytes' ? `unhex(${value})` : value} AS ${name}`;
    });
    return `(SELECT key AS place, ${values.join(', ')} FROM json_each(${parameter}))`;
  },
  streamKey: (stream) => stream,
  // The + takes the type of the id away, which the column does not have.
  chamberKey: (column) => `+${column}`,
  lines: PLACED_LINES,
  places: '(SELECT position AS place, stream, event_id FROM events)',
  placedLines: PLACED_LINES,
};
