// The package chambers-audit as a library, whose types need no other package.
import { AuditedChain } from '../../audit/chain.ts';
import type { CheckResult } from '../../audit/findings.ts';
import { auditFile as runFile, auditService as runService } from '../../audit/main.ts';

export type { CheckResult };

export interface AuditOptions {
  /** Only this chamber of a service. */
  readonly chamberId?: number | undefined;
  /** A file of account lines; a service is asked for them without one. */
  readonly accounts?: string | undefined;
  /** Compares root and tokens with a chain. */
  readonly chain?: { readonly rpc: string; readonly registries: readonly `0x${string}`[] } | undefined;
  /** What the auditor decides where the lines leave it open, e.g. the service's own limits. */
  readonly policy?: AuditPolicy | undefined;
}

export interface AuditPolicy {
  readonly maxAgeSeconds?: number | undefined;
  readonly maxSkewSeconds?: number | undefined;
  readonly origins?: readonly string[] | undefined;
  readonly registries?: readonly string[] | undefined;
  readonly factories?: readonly string[] | undefined;
  readonly allowUnsigned?: boolean | undefined;
  readonly allowReorganized?: boolean | undefined;
}

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log that the lines belong to, as far as a service says; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** How many of the lines are moves, the leaves of the tree. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: `0x${string}` | null;
  /** `verified` when nothing is broken or undecided: see `checks` for what was not evaluated. */
  readonly verdict: 'verified' | 'broken' | 'undecided';
  /** The verdict for laymen. */
  readonly sentence: string;
  /** What everything else that is broken follows from, in the order of the log. */
  readonly causes: readonly { readonly eventIds: readonly number[]; readonly sentence: string }[];
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  readonly checks: readonly CheckResult[];
}

export interface ServiceReport {
  /** What is wrong with the service's list of chambers. */
  readonly problems: readonly string[];
  readonly chambers: readonly ChamberReport[];
}

/** Audits an exported file of lines. Rejects for one that can't be read, or that holds no event of a chamber. */
export function auditFile(path: string, options: AuditOptions = {}): Promise<ChamberReport> {
  return runFile(path, toRequest(options));
}

/** Audits the chambers of a service. Rejects if it can't be reached. */
export function auditService(baseUrl: string, options: AuditOptions = {}): Promise<ServiceReport> {
  return runService(baseUrl, toRequest(options));
}

function toRequest({ chain, ...request }: AuditOptions) {
  if (chain === undefined) return request;
  if (chain.registries.length === 0) throw new TypeError('chain.registries must name the ChamberRegistry');
  return { ...request, chain: new AuditedChain(chain.rpc, chain.registries) };
}
