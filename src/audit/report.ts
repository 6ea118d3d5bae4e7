// The outcome of an audit: a value for programs, lines for people.
import { paint, plain } from '../terminal.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { ChamberAudit } from './audit.ts';
import type { CheckResult, Finding, Verdict } from './ledger.ts';

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log that a service said the lines are of; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** How many of the lines are moves, the leaves of the tree. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: Hex | null;
  /** `verified` when nothing is broken: see `checks` for what was not evaluated. */
  readonly verdict: 'verified' | 'broken';
  /** Of checks; they add up to `total`. */
  readonly counts: {
    readonly verified: number;
    readonly broken: number;
    readonly notEvaluated: number;
    readonly total: number;
  };
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  readonly checks: readonly CheckResult[];
}

export interface Origin {
  readonly source: string;
  readonly chamberId: number | null;
  readonly logId: string | null;
}

export function toReport(audit: ChamberAudit, { source, chamberId, logId }: Origin): ChamberReport {
  const checks = audit.ledger.results();
  const count = (verdict: Verdict) => checks.filter((check) => check.verdict === verdict).length;
  const broken = count('broken');
  const named = new Set(checks.flatMap(({ findings }) => findings.flatMap(({ eventIds }) => eventIds)));
  return {
    source,
    chamberId: chamberId ?? audit.state?.chamberId ?? null,
    logId,
    lines: audit.lineCount,
    moves: audit.moveCount,
    root: audit.root,
    verdict: broken === 0 ? 'verified' : 'broken',
    counts: { verified: count('verified'), broken, notEvaluated: count('not evaluated'), total: checks.length },
    brokenEvents: [...named].sort((a, b) => a - b),
    checks,
  };
}

const FINDINGS_SHOWN_MAX = 20;
const EVENTS_SHOWN_MAX = 50;
const VERDICT_CHARS = 'not evaluated'.length;
const NAME_CHARS = 'transactions'.length;

export function toText(report: ChamberReport): readonly string[] {
  const { source, chamberId, lines, moves, root, checks } = report;
  const head = `Chamber ${chamberId ?? '?'} of ${plain(source)}: ${lines} lines, ${moves} moves`;
  return [paint('bold', head), `root ${root ?? '–'}`, '', ...checks.flatMap(toRows), '', summary(report)];
}

const STYLES = { verified: 'green', broken: 'red', 'not evaluated': 'yellow' } as const;

function toRows({ name, title, verdict, counts, findings, findingsLeftOut, note }: CheckResult): readonly string[] {
  const label = paint(STYLES[verdict], verdict.padEnd(VERDICT_CHARS));
  const subjects = counts.verified + counts.broken + counts.notEvaluated;
  const about = subjects > 0 ? ` (${counts.verified} of ${subjects})` : '';
  const known = note === null ? '' : `: ${plain(note)}`;
  const shown = findings.slice(0, FINDINGS_SHOWN_MAX).map(toRow);
  const more = findings.length - shown.length + findingsLeftOut;
  return [
    `${label}  ${name.padEnd(NAME_CHARS)}  ${title}${about}${known}`,
    ...shown,
    ...(more > 0 ? [toRow({ eventIds: [], sentence: `and ${more} more; --json lists them` })] : []),
  ];
}

function toRow({ sentence }: Finding): string {
  return `${' '.repeat(VERDICT_CHARS + NAME_CHARS + 4)}${plain(sentence)}`;
}

function summary({ counts, brokenEvents }: ChamberReport): string {
  const { verified, broken, notEvaluated, total } = counts;
  const sum = `${verified} verified, ${broken} broken, ${notEvaluated} not evaluated of ${total} checks.`;
  if (broken === 0) return sum;
  const shown = brokenEvents.slice(0, EVENTS_SHOWN_MAX).join(', ');
  const named = brokenEvents.length > EVENTS_SHOWN_MAX ? `${shown} …` : shown;
  return brokenEvents.length === 0 ? sum : `${sum} Events named: ${named}.`;
}
