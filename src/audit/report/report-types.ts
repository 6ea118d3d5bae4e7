// The outcome of an audit, as report.schema.json describes it: members are only ever added. This file holds types alone, so that
// the package publishes them without other libraries.
import type { Outcome } from '../../../projections/outcome.ts';
import type { Hex } from '../../vocabulary/values.ts';
import type { CheckResult, Finding, Verdict } from './findings.ts';

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log of the lines, according to the service; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** The addresses for which requests were signed. */
  readonly origins: readonly string[];
  /** The number of moves, the leaves of the tree: eventCount of the service and of the commitment. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: Hex | null;
  /** `verified` if nothing is broken or undecided; `checks` lists what was not evaluated. */
  readonly verdict: Exclude<Verdict, 'not evaluated'>;
  readonly unsignedMoves: number;
  /** The number of checks with each outcome, and in all. */
  readonly counts: CheckResult['counts'] & { readonly total: number };
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  /** Events whose texts the service has withheld, and whose lines --originals does not hold; absent in reports of earlier releases. */
  readonly withheldEvents?: readonly number[];
  /** The same of the members' accounts. */
  readonly withheldAccountEvents?: readonly AccountEventName[];
  readonly sentence: string;
  /** What a sound chamber leaves to look at, such as a copy that is probably cut; null if there is nothing. */
  readonly reservation: string | null;
  /** All other findings follow from these; in the order of the log. */
  readonly causes: readonly { readonly eventIds: readonly number[]; readonly sentence: string }[];
  readonly checks: readonly ReportedCheck[];
  /** Only if requested: what the lines say that the chamber came to or waits for, null if they don't say it. */
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
  /** The index of its cause; null for consequences and findings without a known cause. */
  readonly cause: number | null;
  readonly isConsequence: boolean;
}

/** The problems of the whole service, and its chambers. */
export interface ServiceReport {
  readonly problems: readonly string[];
  /** Questions for the caller; absent for files. */
  readonly doubts?: readonly string[];
  readonly chambers: readonly ChamberReport[];
}

/** Printed by --json. */
export interface AuditReport extends ServiceReport {
  readonly source: string;
  readonly verdict: ChamberReport['verdict'];
  readonly sentence: string;
}
