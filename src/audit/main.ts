// The command `chambers audit`: options, output and exit codes.
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { outcomeText } from '../../projections/outcome.ts';
import { parsePolicy } from '../tlog/policy.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { isWalletAddress } from '../vocabulary/schemas.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';
import { escapeInvisible, visibleJson, visibleLine } from '../vocabulary/visible.ts';
import { auditFile, auditService } from './audit.ts';
import type { AuditedChain } from './chain/chain-reader.ts';
import { normalBase } from './line/evidence.ts';
import { type InputLimits, Unreachable, UnusableInput } from './line/input.ts';
import type { AuditPolicy } from './policy.ts';
import { readReceipts } from './receipts/given-receipts.ts';
import { ProofFolder } from './receipts/proof-folder.ts';
import { Progress } from './report/progress.ts';
import { toAuditReport } from './report/report.ts';
import type { AuditReport } from './report/report-types.ts';
import { toText } from './report/text.ts';
import { splitNotes } from './service/checkpoint.ts';
import type { CheckpointOptions } from './service/checkpoints.ts';

export interface AuditArguments extends AuditPolicy {
  /** The URL of a service, the path of an exported file, or `-` for standard input. */
  readonly target: string;
  /** Defaults to all chambers of a service. */
  readonly chamber?: number | undefined;
  readonly rpc?: string | undefined;
  /** A file of account lines, if the target is a file. */
  readonly accounts?: string | undefined;
  /** A file of kept checkpoints. */
  readonly checkpoints?: string | undefined;
  /** A file with a trust policy (C2SP tlog-policy). */
  readonly witnesses?: string | undefined;
  /** A file of kept receipts, or a folder of such files. */
  readonly receipts?: string | undefined;
  /** The folder for proofs of misbehaviour. */
  readonly proofs?: string | undefined;
  /** A file of kept lines. */
  readonly originals?: string | undefined;
  readonly limits?: Partial<InputLimits> | undefined;
  /** Replaces the system clock. */
  readonly now?: (() => Millis) | undefined;
  readonly json: boolean;
  /** Prints every check of every chamber. */
  readonly verbose?: boolean | undefined;
  /** Instead of the report, prints the chamber's outcome to standard output and the verdict to standard error. */
  readonly outcome?: boolean | undefined;
  /** Called with the report before it is printed. */
  readonly keep?: ((report: AuditReport) => Promise<void>) | undefined;
}

export const AUDIT_EXIT = { verified: 0, usage: 2, broken: 3, undecided: 4, unreachable: 6 } as const;

/** Prints the report and resolves to the exit code. */
export async function auditMain(args: AuditArguments): Promise<number> {
  // An audit creates a lot of garbage and keeps little. V8's default new space takes 100 MB more and saves hardly any time; its default old
  // space takes 40 MB more and saves none.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=50');
  const { target, json, chamber: chamberId, accounts, outcome: asksOutcome = false } = args;
  const progress = new Progress();
  try {
    if (asksOutcome && isUrl(target) && chamberId === undefined) throw new UnusableInput('--outcome needs --chamber');
    const request = {
      chamberId,
      receipts: readOption('--receipts', args.receipts, readReceipts),
      accounts,
      originals: args.originals,
      policy: checkedPolicy(args),
      chain: await toChain(args),
      limits: args.limits,
      now: args.now,
      asksOutcome,
      log: toCheckpointOptions(args),
      onProgress: progress.update,
    };
    const audited = isUrl(target)
      ? await auditService(target, request)
      : { problems: [], chambers: [await auditFile(target, request)] };
    progress.clear();
    const report = toAuditReport(target, audited);
    await args.keep?.(report);
    if (asksOutcome) printOutcome(report, json);
    else console.log(json ? visibleJson(report) : toText(report, args.verbose === true));
    return AUDIT_EXIT[report.verdict];
  } catch (error) {
    progress.clear();
    if (!(error instanceof UnusableInput || error instanceof Unreachable || error instanceof ForumError)) throw error;
    const detail = error.code === 'usage' ? `${target}: ${error.message}` : error.message;
    const exitCode = error instanceof ForumError ? AUDIT_EXIT.usage : AUDIT_EXIT[error.code];
    console.error(
      json ? visibleJson({ error: error.code, detail, exitCode }) : `${error.code}: ${visibleLine(detail)}`,
    );
    return exitCode;
  }
}

/** Prints the body of GET /chambers/:id/outcome, or nothing if the lines are broken. Throws UnusableInput if the chamber is not over. */
function printOutcome({ verdict, sentence, chambers: [chamber] }: AuditReport, json: boolean): void {
  const { chamberId, outcome = null } = chamber ?? {};
  if (verdict !== 'verified') console.error(json ? visibleJson({ verdict, sentence }) : visibleLine(sentence));
  if (verdict === 'broken' || outcome === null) return;
  if ('waitsFor' in outcome) throw new UnusableInput(`chamber ${chamberId} is waiting for ${outcome.waitsFor}`);
  const text = outcomeText(outcome.view);
  process.stdout.write(process.stdout.isTTY ? `${escapeInvisible(text)}\n` : text);
}

function isUrl(target: string): boolean {
  return /^https?:\/\//i.test(target) && URL.canParse(target);
}

function checkedPolicy(args: AuditArguments): AuditPolicy {
  const { registries, factories, origins, maxAgeSeconds, maxSkewSeconds } = args;
  const { allowUnsigned, allowReorganized, allowSkippedIds, allowUnpublished, whole } = args;
  requireAddresses('--registry', registries);
  requireAddresses('--factory', factories);
  const bases = origins?.map((origin) => {
    const base = isUrl(origin) ? normalBase(origin) : undefined;
    if (base === undefined) throw new UnusableInput('--origin must be an http(s) URL whose %-encodings are UTF-8');
    return base;
  });
  const allowed = { allowUnsigned, allowReorganized, allowSkippedIds, allowUnpublished, whole };
  return { registries, factories, origins: bases, maxAgeSeconds, maxSkewSeconds, ...allowed };
}

function toCheckpointOptions({ checkpoints, witnesses, proofs }: AuditArguments): CheckpointOptions {
  const keptNotes = readOption('--checkpoints', checkpoints, (path) => splitNotes(readFileSync(path, 'utf8')));
  if (keptNotes?.length === 0) throw new UnusableInput('--checkpoints: the file contains no checkpoint');
  const witnessPolicy = readOption('--witnesses', witnesses, (path) => parsePolicy(readFileSync(path, 'utf8')));
  return { keptNotes: keptNotes ?? [], witnessPolicy, proofs: new ProofFolder(proofs) };
}

function readOption<Value>(option: string, path: string | undefined, read: (path: string) => Value): Value | undefined {
  try {
    return path === undefined ? undefined : read(path);
  } catch (error) {
    throw new UnusableInput(`${option}: ${(error as Error).message}`);
  }
}

function requireAddresses(option: string, addresses: readonly string[] = []): void {
  if (addresses.every(isWalletAddress)) return;
  throw new UnusableInput(`${option} must be an EVM address with a valid checksum`);
}

async function toChain({ rpc, registries = [], limits }: AuditArguments): Promise<AuditedChain | undefined> {
  if (rpc === undefined) return undefined;
  if (registries.length === 0) throw new UnusableInput('--rpc needs --registry');
  if (!isUrl(rpc)) throw new UnusableInput('--rpc must be an http(s) URL');
  const { AuditedChain } = await import('./chain/chain-reader.ts');
  return new AuditedChain(rpc, registries as readonly Hex[], limits);
}
