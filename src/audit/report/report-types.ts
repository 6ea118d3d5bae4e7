// The outcome of an audit, as report.schema.json describes it to other programs: members are only ever added. Types alone: the
// package publishes them without the libraries behind the rest.
import type { Outcome } from '../../../projections/outcome.ts';
import type { Hex } from '../../vocabulary/values.ts';
import type { CheckResult, Finding, Verdict } from './findings.ts';

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log that the lines belong to, as far as a service says; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** The addresses that its requests were signed for. */
  readonly origins: readonly string[];
  /** How many of the lines are moves, the leaves of the tree: eventCount of the service and of the commitment. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: Hex | null;
  /** `verified` when nothing is broken or undecided: see `checks` for what was not evaluated. */
  readonly verdict: Exclude<Verdict, 'not evaluated'>;
  /** Moves that nobody signed. */
  readonly unsignedMoves: number;
  /** The numbers of checks; they add up to `total`. */
  readonly counts: CheckResult['counts'] & { readonly total: number };
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  /** The verdict for laymen. */
  readonly sentence: string;
  /** What everything else that is broken follows from, in the order of the log. */
  readonly causes: readonly { readonly eventIds: readonly number[]; readonly sentence: string }[];
  readonly checks: readonly ReportedCheck[];
  /** What the lines say that the chamber came to, or waits for; only where it was asked for, and null where they do not say it. */
  readonly outcome?: Outcome | null;
}

export interface ReportedCheck extends CheckResult {
  readonly findings: readonly ReportedFinding[];
}

export interface ReportedFinding extends Finding {
  /** The index of its cause; null for a consequence of the causes, and where the cause was not sought. */
  readonly cause: number | null;
  readonly isConsequence: boolean;
}

/** The report of a service: what is wrong with its list, and its chambers. */
export interface ServiceReport {
  readonly problems: readonly string[];
  /** What only the caller can decide about it; absent of files. */
  readonly doubts?: readonly string[];
  readonly chambers: readonly ChamberReport[];
}

/** The report of everything that was audited: what --json prints. */
export interface AuditReport extends ServiceReport {
  readonly source: string;
  readonly verdict: ChamberReport['verdict'];
  readonly sentence: string;
}
