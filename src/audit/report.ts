// The outcome of an audit: a value for programs, lines for people.
import { paint, plain } from '../terminal.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { ChamberAudit } from './chamber-audit.ts';
import { CHECK_NAMES, type CheckResult, type Verdict } from './findings.ts';

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log that the lines belong to, as far as a service says; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** How many of the lines are moves, the leaves of the tree. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: Hex | null;
  /** `verified` when nothing is broken or undecided: see `checks` for what was not evaluated. */
  readonly verdict: Exclude<Verdict, 'not evaluated'>;
  /** Moves that nobody signed. */
  readonly unsignedMoves: number;
  /** Of checks; they add up to `total`. */
  readonly counts: CheckResult['counts'] & { readonly total: number };
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  readonly checks: readonly CheckResult[];
}

/** Of a service: what is wrong with its list, and its chambers. */
export interface ServiceReport {
  readonly problems: readonly string[];
  readonly chambers: readonly ChamberReport[];
}

type Origin = Pick<ChamberReport, 'source' | 'chamberId' | 'logId'>;

export function toReport(audit: ChamberAudit, { source, chamberId, logId }: Origin): ChamberReport {
  const checks = audit.findings.results();
  const count = (verdict: Verdict) => checks.filter((check) => check.verdict === verdict).length;
  const [broken, undecided] = [count('broken'), count('undecided')];
  const named = new Set(checks.flatMap(({ findings }) => findings.flatMap(({ eventIds }) => eventIds)));
  return {
    source,
    chamberId: chamberId ?? audit.decisions.state?.chamberId ?? null,
    logId,
    lines: audit.lineCount,
    moves: audit.moves.size,
    root: audit.moves.root(),
    verdict: broken > 0 ? 'broken' : undecided > 0 ? 'undecided' : 'verified',
    unsignedMoves: audit.unsignedMoves,
    counts: {
      verified: count('verified'),
      broken,
      undecided,
      notEvaluated: count('not evaluated'),
      total: checks.length,
    },
    brokenEvents: [...named].sort((a, b) => a - b),
    checks,
  };
}

const FINDINGS_SHOWN_MAX = 20;
const EVENTS_SHOWN_MAX = 50;
const VERDICT_CHARS = 'not evaluated'.length;
const NAME_CHARS = Math.max(...CHECK_NAMES.map(({ length }) => length));
const STYLES = { verified: 'green', broken: 'red', undecided: 'yellow', 'not evaluated': 'yellow' } as const;

export function toText({ source, chamberId, lines, moves, root, checks, ...rest }: ChamberReport): string {
  const head = `Chamber ${chamberId ?? '?'} of ${plain(source)}: ${lines} lines, ${moves} moves`;
  const rows = checks.flatMap(toRows);
  return [paint('bold', head), `root ${root ?? '–'}`, '', ...rows, '', summary(rest)].join('\n');
}

function toRows({ name, title, verdict, counts, findings, findingsLeftOut, note }: CheckResult): readonly string[] {
  const label = paint(STYLES[verdict], verdict.padEnd(VERDICT_CHARS));
  const subjects = counts.verified + counts.broken + counts.undecided + counts.notEvaluated;
  const share = subjects > 0 ? ` (${counts.verified} of ${subjects})` : '';
  const suffix = note === null ? '' : `: ${plain(note)}`;
  const sentences = findings.slice(0, FINDINGS_SHOWN_MAX).map(({ sentence }) => plain(sentence));
  const more = findings.length - sentences.length + findingsLeftOut;
  if (more > 0) sentences.push(`and ${more} more; --json lists them`);
  const indent = ' '.repeat(VERDICT_CHARS + NAME_CHARS + 4);
  return [
    `${label}  ${name.padEnd(NAME_CHARS)}  ${title}${share}${suffix}`,
    ...sentences.map((sentence) => indent + sentence),
  ];
}

type Summed = Pick<ChamberReport, 'counts' | 'brokenEvents' | 'unsignedMoves'>;

function summary({ counts, brokenEvents, unsignedMoves }: Summed): string {
  const { verified, broken, undecided, notEvaluated, total } = counts;
  const open = undecided === 0 ? '' : `${undecided} undecided, `;
  const unsigned = unsignedMoves === 0 ? '' : ` Moves that nobody signed: ${unsignedMoves}.`;
  const sum = `${verified} verified, ${broken} broken, ${open}${notEvaluated} not evaluated of ${total} checks.${unsigned}`;
  if (brokenEvents.length === 0) return sum;
  const shown = brokenEvents.slice(0, EVENTS_SHOWN_MAX).join(', ');
  return `${sum} Events named: ${shown}${brokenEvents.length > EVENTS_SHOWN_MAX ? ' …' : ''}.`;
}
