// Statements with numbered values, `$1` for the first: the driver binds by position or by name.
import type { Database, Statement } from 'better-sqlite3';
import type { SqlValue } from '../sql/sql.ts';

export interface NumberedStatement {
  readonly statement: Statement<unknown[]>;
  /** Returns the values in the order of their uses. */
  readonly bind: (values: readonly SqlValue[]) => readonly SqlValue[];
}

export function prepareNumbered(db: Database, text: string): NumberedStatement {
  const order = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number) - 1);
  const statement = db.prepare<unknown[]>(text.replace(/\$\d+/g, '?'));
  const isInOrder = order.every((index, place) => index === place);
  const bind = (values: readonly SqlValue[]) => (isInOrder ? values : order.map((index) => values[index] ?? null));
  return { statement, bind };
}
