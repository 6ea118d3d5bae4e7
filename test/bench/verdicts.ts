// Verdicts on figures: ratios, differences and bounds, each only if the runs allow it.
import { median, spread } from './figures.ts';

export interface Row {
  readonly what: string;
  readonly unit: string;
  /** One value per run. */
  readonly values: readonly number[];
}

export interface Target {
  readonly is: 'at least' | 'at most';
  readonly value: number;
}

export interface Verdict {
  readonly what: string;
  /** Null if the figures allow no verdict; `why` gives the reason. */
  readonly value: number | null;
  /** The unit; empty for a ratio. */
  readonly unit: string;
  readonly why: string | null;
  readonly target: Target;
}

export interface Compared {
  readonly what: string;
  readonly of: Row;
  readonly to: Row;
  readonly target: Target;
  /** Reasons why the two sides cannot be compared at all, such as failed requests. */
  readonly objections?: readonly string[];
}

/** The maximum spread as a share of the median; a larger one says more about the machine than about the program. */
const SPREAD_MAX = 0.3;

/** Compares two medians by their ratio. */
export function compare({ what, of, to, target, objections = [] }: Compared): Verdict {
  const why = [...objections, ...[of, to].flatMap(tooFarApart)];
  return verdict({ what, unit: '', target }, median(of.values) / median(to.values), why);
}

/** Compares two medians by their difference, in their unit. */
export function exceed({ what, of, to, target, objections = [] }: Compared): Verdict {
  const why = [...objections, ...[of, to].flatMap(tooFarApart)];
  return verdict({ what, unit: of.unit, target }, median(of.values) - median(to.values), why);
}

/** Judges a single figure; its runs may differ as long as they agree about the target. */
export function bound({ what, of, target, objections = [] }: Omit<Compared, 'to'>): Verdict {
  const agree = new Set(of.values.map((value) => isMet(value, target))).size === 1;
  const why = agree ? objections : [...objections, ...tooFarApart(of)];
  return verdict({ what, unit: of.unit, target }, median(of.values), why);
}

function verdict(about: Pick<Verdict, 'what' | 'unit' | 'target'>, value: number, why: readonly string[]): Verdict {
  if (Number.isNaN(value) && why.length === 0) return verdict(about, value, ['nothing was measured']);
  return why.length > 0 ? { ...about, value: null, why: why.join('; ') } : { ...about, value, why: null };
}

export function isMet(value: number, target: Target): boolean {
  return target.is === 'at least' ? value >= target.value : value <= target.value;
}

function tooFarApart({ what, values }: Row): readonly string[] {
  const apart = spread(values);
  return apart <= SPREAD_MAX
    ? []
    : [`the runs of ${what} differ by ${percent(apart)} (more than ${percent(SPREAD_MAX)})`];
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
