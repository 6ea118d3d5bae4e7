// Prints results as one JSON value or as lines for people, and errors as one sentence, never as a stack trace. Escapes remote text, which
// could otherwise control the terminal.
import { ClientError, type ClientErrorCode } from '../client/error.ts';
import { paint } from '../process/terminal.ts';
import { ForumError, messageOf, toMembers } from '../vocabulary/errors.ts';
import { escapeInvisible, visibleJson, visibleLine } from '../vocabulary/visible.ts';

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  verification: 3,
  authentication: 4,
  conflict: 5,
  unreachable: 6,
} as const;

/** An error of the command line itself. The message says what to do. */
export class CommandError extends Error {
  readonly kind: keyof typeof EXIT;
  /** Other members of the JSON error. */
  readonly members: Readonly<Record<string, string>>;

  constructor(kind: keyof typeof EXIT, message: string, members: Readonly<Record<string, string>> = {}) {
    super(message);
    this.kind = kind;
    this.members = members;
  }
}

const EXIT_OF: Partial<Record<ClientErrorCode, number>> = {
  FORUM_ERR_VALIDATION: EXIT.usage,
  FORUM_ERR_CALLBACK: EXIT.usage,
  FORUM_ERR_NOT_FOUND: EXIT.usage,
  CLIENT_ERR_INPUT: EXIT.usage,
  CLIENT_ERR_CHAIN: EXIT.verification,
  CLIENT_ERR_PROOF: EXIT.verification,
  FORUM_ERR_SIGNATURE: EXIT.authentication,
  FORUM_ERR_RETIRED: EXIT.authentication,
  CLIENT_ERR_KEY: EXIT.authentication,
  FORUM_ERR_PHASE: EXIT.conflict,
  CLIENT_ERR_EARLY: EXIT.conflict,
  FORUM_ERR_TURN: EXIT.conflict,
  FORUM_ERR_MEMBER: EXIT.conflict,
  FORUM_ERR_FORBIDDEN: EXIT.conflict,
  FORUM_ERR_ADMISSION: EXIT.conflict,
  FORUM_ERR_CONFLICT: EXIT.conflict,
  FORUM_ERR_UNAVAILABLE: EXIT.unreachable,
  CLIENT_ERR_UNREACHABLE: EXIT.unreachable,
  CLIENT_ERR_TOO_LARGE: EXIT.unreachable,
};

/** Prints the error to standard error, as JSON if the output is JSON; returns the exit code. */
export function printError(isJson: boolean, error: unknown): number {
  const isCoded = error instanceof ClientError || error instanceof ForumError;
  const code = isCoded ? error.code : error instanceof CommandError ? error.kind : 'failure';
  const exitCode = isCoded ? (EXIT_OF[error.code] ?? EXIT.failure) : EXIT[code as keyof typeof EXIT];
  const detail = messageOf(error);
  const members = isCoded ? toMembers(error) : error instanceof CommandError ? error.members : {};
  console.error(
    isJson
      ? visibleJson({ error: code, detail, exitCode, ...members })
      : `${paint('red', code)}: ${visibleLine(detail)}`,
  );
  return exitCode;
}

/** Prints to standard error, because standard output contains only the result. */
export function printNotice(isJson: boolean, notice: string): void {
  console.error(isJson ? visibleJson({ notice }) : visibleLine(notice));
}

export function print(isJson: boolean, value: unknown, forPeople: readonly string[]): void {
  console.log(isJson ? visibleJson(value) : forPeople.join('\n'));
}

/** Returns a stored log line; if standard output is a terminal, escapes invisible characters. */
export function toPrintedLine(line: string): string {
  return process.stdout.isTTY ? escapeInvisible(line) : line;
}

/** Prints exactly these characters; on a terminal, escapes invisible ones. */
export function printBytes(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${escapeInvisible(text)}\n` : text);
}

export function printMembers(isJson: boolean, value: object): void {
  print(isJson, value, members(value));
}

export function members(value: object): readonly string[] {
  const rows = Object.entries(value).map(([name, member]) => [name, asText(member)] as const);
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `${paint('dim', name.padEnd(width))}  ${text}`);
}

/** Without a limit, a hostile cell could widen its column in every row. */
const COLUMN_CHARS_MAX = 120;
const CELL_CHARS_MAX = 2_000;
const ROWS_MAX = 1_000;

/** Returns the first rows under their titles, or `empty` if there are no rows. */
export function table(titles: readonly string[], rows: readonly (readonly unknown[])[], empty = ''): readonly string[] {
  if (rows.length === 0) return [empty];
  const texts = rows.slice(0, ROWS_MAX).map((row) => row.map((value) => asText(value).slice(0, CELL_CHARS_MAX)));
  const widthOf = (title: string, column: number) =>
    Math.min(Math.max(title.length, ...texts.map((row) => row[column]?.length ?? 0)), COLUMN_CHARS_MAX);
  const widths = titles.map(widthOf);
  const pad = (text: string, column: number) => text.padEnd(widths[column] ?? 0);
  const toLine = (row: readonly string[]) => row.map(pad).join('  ').trimEnd();
  const more = rows.length > ROWS_MAX ? [`… and ${rows.length - ROWS_MAX} more: --json prints all`] : [];
  return [paint('bold', toLine(titles)), ...texts.map(toLine), ...more];
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return visibleLine(typeof value === 'object' ? JSON.stringify(value) : String(value));
}
