// Statements whose values are numbered, `$1` the first: the driver binds by place or by name.
import type { Database, Statement } from 'better-sqlite3';
import type { SqlValue } from '../sql/sql.ts';

export interface NumberedStatement {
  readonly statement: Statement<unknown[]>;
  /** The values by the places where they are used. */
  readonly bind: (values: readonly SqlValue[]) => readonly SqlValue[];
}

export function prepareNumbered(db: Database, text: string): NumberedStatement {
  const order = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number) - 1);
  const statement = db.prepare<unknown[]>(text.replace(/\$\d+/g, '?'));
  const isInOrder = order.every((index, place) => index === place);
  const bind = (values: readonly SqlValue[]) => (isInOrder ? values : order.map((index) => values[index] ?? null));
  return { statement, bind };
}
