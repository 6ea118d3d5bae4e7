// Prints a bench's report on the terminal: the figures of each side, then the verdicts.
import { median } from './figures.ts';
import { isMet, type Row, type Verdict } from './verdicts.ts';

export interface Report {
  readonly bench: string;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
  readonly notes?: readonly string[];
}

export function printReport({ bench, rows, verdicts, notes = [] }: Report): void {
  const lines = [`\n${bench}`, ...rows.map(rowLine), ...verdicts.map(verdictLine), ...notes.map((note) => `  ${note}`)];
  process.stdout.write(`${lines.join('\n')}\n`);
}

function rowLine({ what, unit, values }: Row): string {
  const runs = values.length > 1 ? `  (${values.map(figure).join(', ')})` : '';
  return `  ${what.padEnd(66)} ${figure(median(values)).padStart(11)} ${unit}${runs}`;
}

function verdictLine({ what, value, unit, why, target }: Verdict): string {
  const measure = unit === '' ? '' : ` ${unit}`;
  const wanted = `${target.is} ${target.value}${measure}`;
  if (value === null) return `  ${what}: no ${unit === '' ? 'ratio' : 'verdict'}, because ${why} (wanted ${wanted})`;
  const outcome = isMet(value, target) ? 'reached' : 'MISSED';
  return `  ${what.padEnd(66)} ${value.toFixed(2).padStart(11)}${measure} ${outcome}, wanted ${wanted}`;
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2);
}
