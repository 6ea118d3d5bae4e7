// The read model in SQLite: phases from their own table, memberships from memory.
import type { Database, Statement } from 'better-sqlite3';
import type { Membership } from '../../../projections/todo.ts';
import { DerivedLists, LIST_QUERIES, type ListingRow, type PhaseQuery, type RunListQuery } from '../lists.ts';
import type { Seat } from '../read-model.ts';
import type { Access } from './access.ts';
import type { ChamberPhases } from './chamber-phases.ts';
import { toStored } from './derived-tables.ts';
import type { Memberships } from './memberships.ts';

export class SqliteLists extends DerivedLists {
  readonly #access: Access;
  readonly #memberships: Memberships;
  readonly #phases: ChamberPhases;

  constructor(access: Access, memberships: Memberships, phases: ChamberPhases) {
    super(queries(access));
    this.#access = access;
    this.#memberships = memberships;
    this.#phases = phases;
  }

  protected listPhase(query: PhaseQuery): Promise<readonly ListingRow[]> {
    return this.#access.read(() => this.#phases.list(query));
  }

  listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    return this.#access.read(() => this.#memberships.list(did, limit));
  }

  listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]> {
    const memberAt = ([chamberId, turnOrder]: Seat) =>
      (turnOrder === null ? undefined : this.#memberships.memberAt(chamberId, turnOrder)) ?? null;
    return this.#access.read(() => seats.map(memberAt));
  }
}

function queries(access: Access): RunListQuery {
  const statements = new Map(Object.entries(LIST_QUERIES).map(([name, text]) => [name, prepare(access.file.db, text)]));
  return <Row>(name: string, values: Parameters<RunListQuery>[1]) =>
    access.read(() => {
      const { statement, order } = statements.get(name) as PreparedQuery;
      return statement.all(...order.map((index) => toStored(values[index] ?? null))) as readonly Row[];
    });
}

interface PreparedQuery {
  readonly statement: Statement<unknown[]>;
  /** The values by place. */
  readonly order: readonly number[];
}

function prepare(db: Database, text: string): PreparedQuery {
  const order = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number) - 1);
  return { statement: db.prepare(text.replace(/\$\d+/g, '?')), order };
}
