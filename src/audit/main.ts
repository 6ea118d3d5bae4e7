// `chambers audit`: words to an audit, its report to the output, the verdict to an exit code.
import { plain } from '../terminal.ts';
import type { Hex } from '../vocabulary/values.ts';
import { isWalletAddress } from '../vocabulary/wallet-address.ts';
import { AuditedChain } from './chain.ts';
import { Progress } from './progress.ts';
import { type ChamberReport, toText } from './report.ts';
import { auditFile, auditService } from './sources.ts';
import { Unreachable, UnusableInput } from './unusable-input.ts';

export interface AuditArguments {
  /** The URL of a service, the path of an exported file, or `-` for standard input. */
  readonly target: string;
  /** Without it a service's every chamber. */
  readonly chamber?: number;
  /** Only together with `registry`. */
  readonly rpc?: string;
  /** Address of the ChamberRegistry. */
  readonly registry?: string;
  readonly json: boolean;
}

const EXIT = { verified: 0, usage: 2, broken: 3, unreachable: 6 } as const;

/** Prints the report and resolves to the exit code: 0 nothing broken, 3 something broken, 2 unusable input, 6 unreachable. */
export async function auditMain(args: AuditArguments): Promise<number> {
  const progress = new Progress();
  try {
    const reports = await audit(args, progress);
    progress.clear();
    print(args, reports);
    return reports.every(({ verdict }) => verdict === 'verified') ? EXIT.verified : EXIT.broken;
  } catch (error) {
    progress.clear();
    if (error instanceof UnusableInput) return fail(args, 'usage', `${args.target}: ${error.message}`);
    if (error instanceof Unreachable) return fail(args, 'unreachable', error.message);
    throw error;
  }
}

async function audit(args: AuditArguments, progress: Progress): Promise<readonly ChamberReport[]> {
  const request = {
    chamberId: args.chamber,
    chain: chainOf(args),
    onProgress: (lines: number, share: number | undefined) => progress.update(lines, share),
  };
  if (isUrl(args.target)) return auditService(args.target, request);
  return [await auditFile(args.target, request)];
}

function isUrl(target: string): boolean {
  return /^https?:\/\//i.test(target) && URL.canParse(target);
}

function chainOf({ rpc, registry }: AuditArguments): AuditedChain | undefined {
  if (rpc === undefined && registry === undefined) return undefined;
  if (rpc === undefined || registry === undefined) throw new UnusableInput('--rpc and --registry go together');
  if (!isUrl(rpc)) throw new UnusableInput('--rpc must be an http(s) URL');
  if (!isWalletAddress(registry)) throw new UnusableInput('--registry must be an EVM address with a right checksum');
  return new AuditedChain(rpc, registry as Hex);
}

function print({ target, json }: AuditArguments, chambers: readonly ChamberReport[]): void {
  const isBroken = chambers.some(({ verdict }) => verdict === 'broken');
  const value = { source: target, verdict: isBroken ? 'broken' : 'verified', chambers };
  console.log(json ? JSON.stringify(value) : chambers.map((report) => toText(report).join('\n')).join('\n\n'));
}

function fail({ json }: AuditArguments, error: 'usage' | 'unreachable', detail: string): number {
  const exitCode = EXIT[error];
  console.error(json ? JSON.stringify({ error, detail, exitCode }) : `${error}: ${plain(detail)}`);
  return exitCode;
}
