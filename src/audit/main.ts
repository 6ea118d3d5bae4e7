// The auditor as a command, `chambers audit`, and as a library: auditFile for exported lines, auditService for the chambers
// of a service.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { VerifyingKey } from '../crypto/verify.ts';
import { plain } from '../terminal.ts';
import { isWalletAddress } from '../vocabulary/schemas.ts';
import type { Hex } from '../vocabulary/values.ts';
import { AuditedChain, compareChain } from './chain.ts';
import { ChamberAudit } from './chamber-audit.ts';
import { readLines, Unreachable, UnusableInput } from './input.ts';
import { MerkleTreeJs } from './merkle-root.ts';
import { type ChamberReport, Progress, toReport, toText } from './report.ts';
import { AuditedService } from './service.ts';
import { compareViews } from './views.ts';

export interface AuditArguments {
  /** The URL of a service, the path of an exported file, or `-` for standard input. */
  readonly target: string;
  /** Without it, every chamber of a service. */
  readonly chamber?: number | undefined;
  readonly rpc?: string | undefined;
  readonly registry?: string | undefined;
  readonly json: boolean;
}

const EXIT = { verified: 0, usage: 2, broken: 3, unreachable: 6 } as const;

/** Prints the report and resolves to the exit code: 0 nothing broken, 3 something broken, 2 unusable input, 6 unreachable. */
export async function auditMain(args: AuditArguments): Promise<number> {
  const { target, json, chamber: chamberId } = args;
  const progress = new Progress();
  try {
    const request: AuditRequest = { chamberId, chain: toChain(args), onProgress: progress.update };
    const chambers = isUrl(target) ? await auditService(target, request) : [await auditFile(target, request)];
    progress.clear();
    const verdict = chambers.some((report) => report.verdict === 'broken') ? 'broken' : 'verified';
    console.log(json ? JSON.stringify({ source: target, verdict, chambers }) : chambers.map(toText).join('\n\n'));
    return EXIT[verdict];
  } catch (error) {
    progress.clear();
    if (!(error instanceof UnusableInput || error instanceof Unreachable)) throw error;
    const detail = error.code === 'usage' ? `${target}: ${error.message}` : error.message;
    const exitCode = EXIT[error.code];
    console.error(json ? JSON.stringify({ error: error.code, detail, exitCode }) : `${error.code}: ${plain(detail)}`);
    return exitCode;
  }
}

function isUrl(target: string): boolean {
  return /^https?:\/\//i.test(target) && URL.canParse(target);
}

function toChain({ rpc, registry }: AuditArguments): AuditedChain | undefined {
  if (rpc === undefined && registry === undefined) return undefined;
  if (rpc === undefined || registry === undefined) throw new UnusableInput('--rpc and --registry go together');
  if (!isUrl(rpc)) throw new UnusableInput('--rpc must be an http(s) URL');
  if (!isWalletAddress(registry)) throw new UnusableInput('--registry must be an EVM address with a valid checksum');
  return new AuditedChain(rpc, registry as Hex);
}

export interface AuditRequest {
  readonly chamberId?: number | undefined;
  readonly chain?: AuditedChain | undefined;
  /** Called after every line; `share` of the input from 0 to 1, undefined where its size is unknown. */
  readonly onProgress?: ((lines: number, share: number | undefined) => void) | undefined;
}

/** Audits a file of lines, `-` for standard input. Throws Unreachable, and UnusableInput where it holds no event of a chamber. */
export async function auditFile(path: string, { chamberId, chain, onProgress }: AuditRequest): Promise<ChamberReport> {
  const size = path === '-' ? undefined : await sizeOf(path);
  const audit = new ChamberAudit({ moves: new MerkleTreeJs(), chamberId });
  let bytes = 0;
  for await (const line of readLines(path === '-' ? process.stdin : createReadStream(path))) {
    await audit.take(line);
    bytes += line.bytes.length + 1;
    onProgress?.(audit.lineCount, size === undefined ? undefined : bytes / size);
  }
  audit.conclude();
  const reason = 'the input is a file: audit the URL of a service to compare its responses';
  audit.findings.notEvaluated(reason, 'preview', 'views');
  await compareChain(audit, chain, chamberId ?? audit.decisions.state?.chamberId);
  return toReport(audit, { source: path, chamberId: chamberId ?? null, logId: null });
}

async function sizeOf(path: string): Promise<number> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new UnusableInput(error.code === 'ENOENT' ? 'file not found' : `it can’t be read: ${error.code}`);
  });
  if (stats.isDirectory()) throw new UnusableInput('it is a directory, not a file');
  return stats.size;
}

/** Audits one chamber of the service at that address, or all of them. Throws UnusableInput and Unreachable. */
export async function auditService(baseUrl: string, request: AuditRequest): Promise<readonly ChamberReport[]> {
  const service = new AuditedService(baseUrl);
  const chamberIds = request.chamberId === undefined ? await service.chamberIds() : [request.chamberId];
  if (chamberIds.length === 0) throw new UnusableInput('it has no chambers, there is nothing to audit');
  // Across the chambers of one log no signature may occur twice.
  const shared = { signatures: new Map<string, number>(), keys: new Map<string, VerifyingKey>() };
  const reports: ChamberReport[] = [];
  for (const chamberId of chamberIds) {
    const audit = new ChamberAudit({ moves: new MerkleTreeJs(), chamberId, ...shared });
    for await (const line of service.lines(chamberId, 0)) {
      await audit.take(line);
      request.onProgress?.(audit.lineCount, undefined);
    }
    await compareViews(audit, service, chamberId);
    audit.conclude();
    await compareChain(audit, request.chain, chamberId);
    reports.push(toReport(audit, { source: baseUrl, chamberId, logId: service.logId }));
  }
  return reports;
}
