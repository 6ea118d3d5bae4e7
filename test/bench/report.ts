// What a bench says: figures of each side, and ratios that are only printed when they mean something.
import { median, spread } from './figures.ts';

export interface Row {
  readonly what: string;
  readonly unit: string;
  /** One value a run. */
  readonly values: readonly number[];
}

export interface Ratio {
  readonly what: string;
  /** null where the figures allow none; `why` says why. */
  readonly value: number | null;
  readonly why: string | null;
  readonly target: Target;
}

export interface Target {
  readonly is: 'at least' | 'at most';
  readonly value: number;
}

export interface Report {
  readonly bench: string;
  readonly rows: readonly Row[];
  readonly ratios: readonly Ratio[];
  readonly notes?: readonly string[];
}

export interface Compared {
  readonly what: string;
  readonly of: Row;
  readonly to: Row;
  readonly target: Target;
  /** Why the two sides can't be compared at all, e.g. because answers were refused. */
  readonly objections?: readonly string[];
}

/** Runs that differ by more than this share of their median say more about the machine than about the program. */
const SPREAD_MAX = 0.3;

export function compare({ what, of, to, target, objections = [] }: Compared): Ratio {
  const reasons = [...objections, ...[of, to].flatMap(tooFarApart)];
  if (reasons.length > 0) return { what, value: null, why: reasons.join('; '), target };
  return { what, value: median(of.values) / median(to.values), why: null, target };
}

function tooFarApart({ what, values }: Row): readonly string[] {
  const apart = spread(values);
  return apart <= SPREAD_MAX
    ? []
    : [`the runs of ${what} lie ${percent(apart)} apart (more than ${percent(SPREAD_MAX)})`];
}

export function printReport({ bench, rows, ratios, notes = [] }: Report): void {
  const lines = [`\n${bench}`, ...rows.map(rowLine), ...ratios.map(ratioLine), ...notes.map((note) => `  ${note}`)];
  process.stdout.write(`${lines.join('\n')}\n`);
}

function rowLine({ what, unit, values }: Row): string {
  const runs = values.length > 1 ? `  (${values.map(figure).join(', ')})` : '';
  return `  ${what.padEnd(66)} ${figure(median(values)).padStart(11)} ${unit}${runs}`;
}

function ratioLine({ what, value, why, target }: Ratio): string {
  const wanted = `${target.is} ${target.value}`;
  if (value === null) return `  ${what}: no ratio, because ${why} (wanted ${wanted})`;
  return `  ${what.padEnd(66)} ${value.toFixed(2).padStart(11)} ${isMet(value, target) ? 'reached' : 'MISSED'}, wanted ${wanted}`;
}

function isMet(value: number, target: Target): boolean {
  return target.is === 'at least' ? value >= target.value : value <= target.value;
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
