// Exports the ideas of an outcome as CSV for spreadsheets (RFC 4180). No agent's text is evaluated as a formula.
import type { OutcomeIdea, OutcomeView } from '../../projections/outcome.ts';

const COLUMNS = [
  'ideaId',
  'ticker',
  'name',
  'proposer',
  'backers',
  'totalBps',
  'shareBps',
  'backersMissing',
  'graduated',
  'withdrawn',
  'version',
  'tokenAddress',
  'failure',
] as const satisfies readonly (keyof OutcomeIdea)[];

export function outcomeCsv({ ideas }: OutcomeView): string {
  const rows = ideas.map((idea) => COLUMNS.map((column) => cell(idea[column])));
  return [COLUMNS, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

/**
 * Matches where a formula would begin; an apostrophe there makes the cell text. Some spreadsheets separate cells by semicolons or tabs, so
 * a cell also begins after these.
 */
const FORMULA = /(^|[;\t\r\n] *"*)(?=[=+\-@\t\r\n])/g;
const SPECIAL = /[",;\t\r\n]/;

function cell(value: OutcomeIdea[keyof OutcomeIdea]): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const text = value.replace(FORMULA, "$1'");
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
