// The library chambers-audit. Its types need no other package.
import { auditFile as runFile, auditService as runService } from '../../audit/audit.ts';
import { AuditedChain } from '../../audit/chain/chain-reader.ts';
import type { AuditPolicy } from '../../audit/policy.ts';
import type { ChamberReport, ServiceReport } from '../../audit/report/report-types.ts';

export type { CheckResult } from '../../audit/report/findings.ts';
export type { AuditPolicy, ChamberReport, ServiceReport };

export interface AuditOptions {
  /** Audits only this chamber of a service. */
  readonly chamberId?: number | undefined;
  /** A file of account lines. By default, the auditor requests them from the service. */
  readonly accounts?: string | undefined;
  /** Compares root and tokens with a chain. */
  readonly chain?: { readonly rpc: string; readonly registries: readonly `0x${string}`[] } | undefined;
  /** Decides questions that the lines leave open, e.g. the service's limits. */
  readonly policy?: AuditPolicy | undefined;
}

/** Audits an exported file of lines. Rejects if it can't be read or contains no event of a chamber. */
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
