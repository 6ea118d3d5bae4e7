// The auditor as a command, `chambers audit`, and as a library: auditFile for exported lines, auditService for the chambers
// of a service.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { createVerifier } from '../verifier/verifier.ts';
import { isWalletAddress } from '../vocabulary/schemas.ts';
import type { Hex } from '../vocabulary/values.ts';
import { visibleJson, visibleLine } from '../vocabulary/visible.ts';
import { type Accounts, listedAccounts, ServiceAccounts } from './account/accounts.ts';
import { compareAccounts } from './account/registrations.ts';
import type { AuditedChain } from './chain/chain-reader.ts';
import { ChamberAudit, type SetAside } from './chamber/chamber-audit.ts';
import { TwofoldTree } from './chamber/merkle-root.ts';
import { type AuditContext, auditContext } from './context.ts';
import { FileInput, KeptInput } from './line/file-input.ts';
import { INPUT_LIMITS, type InputLimits, readLines, requireLines, Unreachable, UnusableInput } from './line/input.ts';
import { checkedVerify, type Verify } from './line/verify.ts';
import type { AuditPolicy } from './policy.ts';
import { Progress } from './report/progress.ts';
import { toAuditReport, toReport } from './report/report.ts';
import type { AuditReport, ChamberReport, ServiceReport } from './report/report-types.ts';
import { toText } from './report/text.ts';
import { diagnose } from './report/verdict.ts';
import { LogOrder } from './service/log-order.ts';
import { AuditedService } from './service/service-reader.ts';
import { compareViews } from './service/views.ts';

export interface AuditArguments extends AuditPolicy {
  /** The URL of a service, the path of an exported file, or `-` for standard input. */
  readonly target: string;
  /** Without it, every chamber of a service. */
  readonly chamber?: number | undefined;
  readonly rpc?: string | undefined;
  /** A file of account lines, for a file of lines. */
  readonly accounts?: string | undefined;
  readonly limits?: Partial<InputLimits> | undefined;
  readonly json: boolean;
  /** Every check of every chamber. */
  readonly verbose?: boolean | undefined;
  /** Is given the report before it is printed. */
  readonly keep?: ((report: AuditReport) => Promise<void>) | undefined;
}

/** Of the command: its help lists them. */
export const AUDIT_EXIT = { verified: 0, usage: 2, broken: 3, undecided: 4, unreachable: 6 } as const;

/** Prints the report and resolves to the exit code. */
export async function auditMain(args: AuditArguments): Promise<number> {
  // An audit makes much garbage and keeps little: a larger new space than at the start takes 100 MB and saves hardly any time,
  // and an old space of several times what is kept, as by default, takes 40 MB and saves none.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=50');
  const { target, json, chamber: chamberId, accounts } = args;
  const progress = new Progress();
  try {
    const request = {
      chamberId,
      accounts,
      policy: checkedPolicy(args),
      chain: await toChain(args),
      limits: args.limits,
      onProgress: progress.update,
    };
    const audited = isUrl(target)
      ? await auditService(target, request)
      : { problems: [], chambers: [await auditFile(target, request)] };
    progress.clear();
    const report = toAuditReport(target, audited);
    await args.keep?.(report);
    console.log(json ? visibleJson(report) : toText(report, args.verbose === true));
    return AUDIT_EXIT[report.verdict];
  } catch (error) {
    progress.clear();
    if (!(error instanceof UnusableInput || error instanceof Unreachable)) throw error;
    const detail = error.code === 'usage' ? `${target}: ${error.message}` : error.message;
    const exitCode = AUDIT_EXIT[error.code];
    console.error(
      json ? visibleJson({ error: error.code, detail, exitCode }) : `${error.code}: ${visibleLine(detail)}`,
    );
    return exitCode;
  }
}

function isUrl(target: string): boolean {
  return /^https?:\/\//i.test(target) && URL.canParse(target);
}

function checkedPolicy({
  maxAgeSeconds,
  maxSkewSeconds,
  origins,
  registries,
  factories,
  allowUnsigned,
  allowReorganized,
}: AuditArguments) {
  requireAddresses('--registry', registries);
  requireAddresses('--factory', factories);
  for (const origin of origins ?? []) if (!isUrl(origin)) throw new UnusableInput('--origin must be an http(s) URL');
  // As the check reads them from the requests: in the URL's own form, without a slash at the end.
  const bases = origins?.map((origin) => new URL(origin).href.replace(/\/+$/, ''));
  return { maxAgeSeconds, maxSkewSeconds, origins: bases, registries, factories, allowUnsigned, allowReorganized };
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

export interface AuditRequest {
  readonly chamberId?: number | undefined;
  readonly policy?: AuditPolicy | undefined;
  readonly chain?: AuditedChain | undefined;
  /** INPUT_LIMITS where they are not given. */
  readonly limits?: Partial<InputLimits> | undefined;
  /** A file of account lines; a service is asked for them without one. */
  readonly accounts?: string | undefined;
  /** Called after every line; `share` of the input from 0 to 1, undefined where its size is unknown. */
  readonly onProgress?: ((lines: number, share: number | undefined) => void) | undefined;
}

/** Audits a file of lines, `-` for standard input. Throws Unreachable, and UnusableInput where it holds no event of a chamber. */
export async function auditFile(path: string, request: AuditRequest): Promise<ChamberReport> {
  const { chamberId, chain, policy, onProgress } = request;
  const limits = { ...INPUT_LIMITS, ...request.limits };
  const input = path === '-' ? new KeptInput(process.stdin) : new FileInput(path, await sizeOf(path));
  const { size } = input;
  const auditLines = async (context: AuditContext, aside?: SetAside) => {
    const audit = new ChamberAudit({ moves: new TwofoldTree(), chamberId, context, aside });
    let bytes = 0;
    await audit.takeAll(readLines(input.read(), limits), (line) => {
      requireLines(audit.lineCount, limits.linesMax, '--max-lines');
      bytes += line.bytes.length + 1;
      onProgress?.(audit.lineCount, size === undefined ? undefined : bytes / size);
    });
    audit.conclude({ asksChain: chain !== undefined });
    await askChain(audit, chain, chamberId ?? audit.decisions.state?.chamberId);
    return audit;
  };
  await requireAccounts(request);
  return await withVerifier(async (verify) => {
    const audit = await auditLines(auditContext(policy, verify));
    const reason = 'the input is a file: audit the URL of a service to compare its responses';
    audit.findings.notEvaluated(reason, 'preview', 'views');
    const members = new Set(audit.accountReferences.map(({ did }) => did));
    await compareAccounts(audit, await readAccounts(request, audit.context, members));
    const diagnosis = await diagnose(audit, async (aside) =>
      input.isRepeatable ? await auditLines(auditContext(policy), aside).catch(noReport) : undefined,
    );
    return toReport(audit, { source: path, chamberId: chamberId ?? null, logId: null, diagnosis, now: Date.now() });
  });
}

/** What asks a chain is loaded only for one: it takes 30 MB. */
async function askChain(audit: ChamberAudit, chain?: AuditedChain, chamberId?: number): Promise<void> {
  if (chain === undefined)
    return audit.findings.notEvaluated('use --rpc and --registry to ask the chain', 'contract', 'receipts');
  const { compareChain } = await import('./chain/claims.ts');
  await compareChain(audit, chain, chamberId);
}

/** What can't be read a second time still has the findings of the first. */
function noReport(error: unknown): undefined {
  if (error instanceof UnusableInput || error instanceof Unreachable) return undefined;
  throw error;
}

const BATCH_SIGNATURES = 64;

/** By libsodium or node:crypto, on other threads. */
async function withVerifier<Result>(work: (verify: Verify) => Promise<Result>): Promise<Result> {
  const verifier = createVerifier({ batchJobsMax: BATCH_SIGNATURES });
  const caller = { network: '', did: '' };
  try {
    return await work(checkedVerify((...parts) => verifier.verify(...parts, caller)));
  } finally {
    await verifier.close();
  }
}

async function requireAccounts({ accounts: path }: AuditRequest): Promise<void> {
  if (path === undefined) return;
  await sizeOf(path).catch((error: Error) => {
    throw new UnusableInput(`--accounts=${path}: ${error.message}`);
  });
}

/** Of the agents named, or of all. */
async function readAccounts(
  { accounts: path, limits }: AuditRequest,
  context: AuditContext,
  dids?: ReadonlySet<string>,
): Promise<Accounts | undefined> {
  if (path === undefined) return undefined;
  const lines = readLines(createReadStream(path), { ...INPUT_LIMITS, ...limits });
  return await listedAccounts(lines, context, dids && ((did) => dids.has(did)));
}

async function sizeOf(path: string): Promise<number> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new UnusableInput(error.code === 'ENOENT' ? 'file not found' : `it can’t be read: ${error.code}`);
  });
  if (stats.isDirectory()) throw new UnusableInput('it is a directory, not a file');
  return stats.size;
}

/** Audits one chamber of the service at that address, or all of them. Throws UnusableInput and Unreachable. */
export async function auditService(baseUrl: string, request: AuditRequest): Promise<ServiceReport> {
  const service = new AuditedService(baseUrl, { ...INPUT_LIMITS, ...request.limits });
  const { chamberId: only } = request;
  const { chamberIds, problems } = only === undefined ? await service.chambers() : { chamberIds: [only], problems: [] };
  if (chamberIds.length === 0) throw new UnusableInput('it has no chambers, there is nothing to audit');
  await requireAccounts(request);
  return await withVerifier(async (verify) => {
    const context = auditContext(request.policy, verify);
    const accounts = (await readAccounts(request, context)) ?? new ServiceAccounts(context, service);
    const chambers: ChamberReport[] = [];
    const unreadable: string[] = [];
    const order = new LogOrder();
    for (const chamberId of chamberIds) {
      const auditLines = async (context: AuditContext, aside?: SetAside) => {
        const audit = new ChamberAudit({ moves: new TwofoldTree(), chamberId, context, aside });
        await audit.takeAll(service.lines(chamberId, 0), () => request.onProgress?.(audit.lineCount, undefined));
        await compareViews(audit, service, chamberId);
        audit.conclude({ asksChain: request.chain !== undefined });
        return audit;
      };
      let audit: ChamberAudit;
      try {
        audit = await auditLines(context);
      } catch (error) {
        // A chamber that the service lists must be there.
        if (only !== undefined || !(error instanceof UnusableInput)) throw error;
        unreadable.push(`chamber ${chamberId} can’t be audited: ${error.message}`);
        continue;
      }
      await askChain(audit, request.chain, chamberId);
      await compareAccounts(audit, accounts);
      const diagnosis = await diagnose(audit, async (aside) => {
        const again = await auditLines(auditContext(request.policy), aside).catch(noReport);
        if (again !== undefined) await askChain(again, request.chain, chamberId);
        return again;
      });
      order.take(chamberId, audit.accountReferences);
      const { logId } = service;
      chambers.push(toReport(audit, { source: baseUrl, chamberId, logId, diagnosis, now: Date.now() }));
    }
    return { problems: [...problems, ...unreadable, ...order.problems()], chambers };
  });
}
