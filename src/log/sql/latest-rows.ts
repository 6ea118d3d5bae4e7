// Rows for a statement, which writes each key once: the latest row of a key counts.

import type { Table } from './sql.ts';
import type { Row } from './tables.ts';

export class LatestRows {
  readonly #rows = new Map<Table, Map<string, Row>>();

  add(table: Table, row: Row): void {
    const rows = this.#rows.get(table) ?? new Map<string, Row>();
    this.#rows.set(table, rows.set(table.key.map((name) => row[name]).join(' '), row));
  }

  /** The tables that have rows, by name: batches of the same tables have the same statement. */
  byTable(): readonly (readonly [Table, readonly Row[]])[] {
    const written = [...this.#rows].map(([table, rows]) => [table, [...rows.values()]] as const);
    return written.sort(([one], [other]) => (one.name < other.name ? -1 : 1));
  }
}
