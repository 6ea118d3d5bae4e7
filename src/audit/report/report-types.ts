// The audit report, described by report.schema.json: members are only ever added. This file contains only types, so that the
// published package needs no other libraries for them.
import type { Outcome } from '../../../projections/outcome.ts';
import type { Hex } from '../../vocabulary/values.ts';
import type { CheckResult, Finding, Verdict } from './findings.ts';

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log of the lines, according to the service; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** The base URLs that requests were signed for. */
  readonly origins: readonly string[];
  /** The number of moves, which are the leaves of the tree; eventCount in the service's views and in the commitment. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: Hex | null;
  /** `verified` if nothing is broken or undecided; `checks` lists what was not evaluated. */
  readonly verdict: Exclude<Verdict, 'not evaluated'>;
  readonly unsignedMoves: number;
  /** The number of checks with each verdict, and the total. */
  readonly counts: CheckResult['counts'] & { readonly total: number };
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  /** Events with withheld texts whose originals were not provided; absent in reports of earlier releases. */
  readonly withheldEvents?: readonly number[];
  /** The same for the members' accounts. */
  readonly withheldAccountEvents?: readonly AccountEventName[];
  readonly sentence: string;
  /** A caveat about a sound chamber, for example that the copy is probably cut off; null if there is none. */
  readonly reservation: string | null;
  /** The causes of the findings, in the order of the log. */
  readonly causes: readonly { readonly eventIds: readonly number[]; readonly sentence: string }[];
  readonly checks: readonly ReportedCheck[];
  /** Only if requested: the chamber's outcome, or the event it waits for; null if the lines don't show it. */
  readonly outcome?: Outcome | null;
}

export interface AccountEventName {
  readonly did: string;
  readonly eventId: number;
}

export interface ReportedCheck extends CheckResult {
  readonly findings: readonly ReportedFinding[];
}

export interface ReportedFinding extends Finding {
  /** The index of the cause; null for consequences and for findings without a known cause. */
  readonly cause: number | null;
  readonly isConsequence: boolean;
}

/** Problems with the whole service, and the reports of its chambers. */
export interface ServiceReport {
  readonly problems: readonly string[];
  /** Open questions for the caller; absent for files. */
  readonly doubts?: readonly string[];
  readonly chambers: readonly ChamberReport[];
}

/** The report that --json prints. */
export interface AuditReport extends ServiceReport {
  readonly source: string;
  readonly verdict: ChamberReport['verdict'];
  readonly sentence: string;
}
