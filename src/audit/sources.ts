// Audits whole inputs: a file of exported lines, or the chambers of a service. This is the auditor as a library.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { compareAnswers } from './answers.ts';
import { ChamberAudit } from './audit.ts';
import type { AuditedChain } from './chain.ts';
import { readLines } from './line-reader.ts';
import { type ChamberReport, toReport } from './report.ts';
import { AuditedService } from './service.ts';
import { compareChain } from './settlement.ts';
import { UnusableInput } from './unusable-input.ts';

export interface AuditRequest {
  readonly chamberId?: number | undefined;
  readonly chain?: AuditedChain | undefined;
  /** Told after every line; `share` of the input from 0 to 1, undefined where its size is not known. */
  readonly onProgress?: ((lines: number, share: number | undefined) => void) | undefined;
}

const NO_SERVICE = 'the input is a file: give the URL of a service to compare its answers';
const NO_CHAIN = 'give --rpc and --registry to ask the chain';

/** Audits a file of lines, `-` for standard input. Throws UnusableInput where it holds no events of a chamber, and Unreachable. */
export async function auditFile(path: string, request: AuditRequest): Promise<ChamberReport> {
  const size = path === '-' ? undefined : await sizeOf(path);
  const { chamberId } = request;
  const audit = new ChamberAudit(chamberId === undefined ? {} : { chamberId });
  let bytes = 0;
  for await (const line of readLines(path === '-' ? process.stdin : createReadStream(path))) {
    await audit.take(line);
    bytes += line.bytes.length + 1;
    request.onProgress?.(audit.lineCount, size === undefined ? undefined : bytes / size);
  }
  audit.conclude();
  audit.ledger.notEvaluated('preview', NO_SERVICE);
  audit.ledger.notEvaluated('views', NO_SERVICE);
  await askChain(audit, chamberId ?? audit.state?.chamberId, request);
  return toReport(audit, { source: path, chamberId: chamberId ?? null, logId: null });
}

/** Audits one chamber of the service at that address, or all of them. Throws UnusableInput and Unreachable. */
export async function auditService(baseUrl: string, request: AuditRequest): Promise<readonly ChamberReport[]> {
  const service = new AuditedService(baseUrl);
  const chamberIds = request.chamberId === undefined ? await service.chamberIds() : [request.chamberId];
  if (chamberIds.length === 0) throw new UnusableInput('it has no chambers, there is nothing to audit');
  const signatures = new Map<string, number>();
  const reports: ChamberReport[] = [];
  for (const chamberId of chamberIds) {
    const audit = new ChamberAudit({ chamberId, signatures });
    for await (const line of service.lines(chamberId, 0)) {
      await audit.take(line);
      request.onProgress?.(audit.lineCount, undefined);
    }
    await compareAnswers(audit, service, chamberId);
    audit.conclude();
    await askChain(audit, chamberId, request);
    reports.push(toReport(audit, { source: baseUrl, chamberId, logId: service.logId ?? null }));
  }
  return reports;
}

async function askChain(audit: ChamberAudit, chamberId: number | undefined, { chain }: AuditRequest): Promise<void> {
  if (chain !== undefined && chamberId !== undefined) return compareChain(audit, chain, chamberId);
  const reason = chain === undefined ? NO_CHAIN : 'it is not known which chamber this is';
  audit.ledger.notEvaluated('contract', reason);
  audit.ledger.notEvaluated('receipts', reason);
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new UnusableInput(error.code === 'ENOENT' ? 'there is no such file' : `it can’t be read: ${error.code}`);
  });
  if (found.isDirectory()) throw new UnusableInput('it is a folder, not a file');
  return found.size;
}
