// What commands print: one JSON value for programs, or lines for people, in which remote text cannot steer the terminal.
import { paint, plain } from '../terminal.ts';
import type { Failure } from './failure.ts';

/** Prints the value as JSON, or as the lines that people read. */
export function print(isJson: boolean, value: unknown, forPeople: readonly string[]): void {
  console.log(isJson ? JSON.stringify(value) : forPeople.join('\n'));
}

/** On standard error, so that what was printed before stays what it is. */
export function printFailure(isJson: boolean, { error, detail, expected, exitCode }: Failure): void {
  if (isJson) console.error(JSON.stringify({ error, detail, exitCode, expected }));
  else console.error(`${paint('red', error)}: ${plain(detail)}`);
}

/** Members of an object, one a line. */
export function members(value: object): readonly string[] {
  const rows = Object.entries(value).map(([name, member]) => [name, asText(member)] as const);
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `${paint('dim', name.padEnd(width))}  ${text}`);
}

/** Rows under their titles; without rows, what to say instead. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly unknown[])[],
  empty: string,
): readonly string[] {
  if (rows.length === 0) return [empty];
  const texts = rows.map((row) => row.map(asText));
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...texts.map((row) => (row[column] ?? '').length)),
  );
  const toLine = (row: readonly string[]) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [paint('bold', toLine(titles)), ...texts.map(toLine)];
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return plain(typeof value === 'object' ? JSON.stringify(value) : String(value));
}
