// The auditor as a library: auditFile audits exported lines, auditService the chambers of a service. Both read each chamber once,
// and again only to separate causes from consequences.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DIRECTORY_PATH, type KeyDirectory, parseDirectory } from '../crypto/key-directory.ts';
import { createVerifier } from '../verifier/verifier.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';
import { type Accounts, type ListedOptions, listedAccounts, ServiceAccounts } from './account/accounts.ts';
import { compareAccounts, type JudgeContractProof } from './account/compare-accounts.ts';
import { WatchedAccounts } from './account/watched-accounts.ts';
import type { AuditedChain } from './chain/chain-reader.ts';
import { type Assumptions, ChamberAudit } from './chamber/chamber-audit.ts';
import { CrossCheckedTree } from './chamber/cross-checked-tree.ts';
import { type AuditClock, type AuditContext, auditContext, rerunContext } from './context.ts';
import { fileInput, KeptInput } from './line/file-input.ts';
import {
  countLimited,
  INPUT_LIMITS,
  type InputLimits,
  type RawLine,
  readLines,
  Unreachable,
  UnusableInput,
} from './line/input.ts';
import { Originals } from './line/originals.ts';
import { checkedVerify, type Verify } from './line/verify.ts';
import type { AuditPolicy } from './policy.ts';
import type { GivenReceipts } from './receipts/given-receipts.ts';
import { ProofFolder, provedBy } from './receipts/proof-folder.ts';
import { ReceiptAudit } from './receipts/receipt-audit.ts';
import { type JudgedReceipt, ReceiptChecks, reportAccountReceipts, reportReceipts } from './receipts/receipt-checks.ts';
import type { Reason } from './report/findings.ts';
import { toReport } from './report/report.ts';
import type { ChamberReport, ServiceReport } from './report/report-types.ts';
import { diagnose } from './report/verdict.ts';
import { CheckpointAudit } from './service/checkpoint.ts';
import { type CheckpointOptions, Checkpoints } from './service/checkpoints.ts';
import { LogAccounting, READ_PAUSE_MS, READS_MAX } from './service/log-accounting.ts';
import { LogOrder } from './service/log-order.ts';
import { orUndefined, ServiceLog } from './service/service-log.ts';
import { AuditedService, Rejected } from './service/service-reader.ts';
import { compareViews } from './service/views.ts';

export interface AuditRequest {
  readonly chamberId?: number | undefined;
  readonly policy?: AuditPolicy | undefined;
  readonly chain?: AuditedChain | undefined;
  /** Defaults to INPUT_LIMITS. */
  readonly limits?: Partial<InputLimits> | undefined;
  /** A file of account lines. If absent, a service is asked for them. */
  readonly accounts?: string | undefined;
  readonly asksOutcome?: boolean | undefined;
  /** A file of kept lines: originals of stubs, and other stubs. */
  readonly originals?: string | undefined;
  readonly receipts?: GivenReceipts | undefined;
  /** For a service: kept checkpoints, trusted witnesses, and the folder for proofs of misbehaviour. */
  readonly log?: CheckpointOptions | undefined;
  /** Replaces the system clock. If set, dates are checked even in a file whose first line has a later date. */
  readonly now?: (() => Millis) | undefined;
  /** Called after every line; `share` of the input is between 0 and 1, undefined if its size is unknown. */
  readonly onProgress?: ((lines: number, share: number | undefined) => void) | undefined;
}

/** Audits a file of lines, or standard input for `-`. Throws Unreachable, and UnusableInput for input without chamber events. */
export async function auditFile(path: string, request: AuditRequest): Promise<ChamberReport> {
  const source = await fileSource(path, request);
  await requireAccounts(request);
  return await withVerifier(async (verify) => {
    const clock = { now: request.now ?? Date.now, isStated: request.now !== undefined };
    const context = auditContext(request.policy, verify, clock, { originals: await readOriginals(request) });
    const read = await readChamber(source, request, context);
    const { audit, checks } = read;
    const members = new Set([...audit.accountReferences].map(({ did }) => did));
    const accounts = await readAccounts(request, context, {
      isWanted: (did) => members.has(did),
      onLine: checks?.take,
    });
    if (checks !== undefined) await reportAccountReceipts(audit.findings, checks, optionsOf(request).proofs);
    return await judgeChamber(read, source, request, accounts);
  });
}

const NOT_FOUND = 404;

/**
 * Audits one or all chambers of the service at `baseUrl`. Throws UnusableInput and Unreachable, and FORUM_ERR_NOT_FOUND if the
 * chamber doesn't exist.
 */
export async function auditService(baseUrl: string, request: AuditRequest): Promise<ServiceReport> {
  const service = new AuditedService(baseUrl, { ...INPUT_LIMITS, ...request.limits });
  const clock = { now: request.now ?? Date.now, isStated: true };
  const { chamberId: only, policy } = request;
  const options = optionsOf(request);
  const published = new ServiceLog(service);
  const checkpoints = new Checkpoints(published, options);
  const accounting = only === undefined ? new LogAccounting({ service, published, checkpoints, clock }) : undefined;
  // Must come first: from now on, the service serves every event that the checkpoint covers.
  const unread = await accounting?.begin();
  const { chamberIds, problems } =
    only === undefined ? await service.chambers(policy) : { chamberIds: [only], problems: [] };
  if (chamberIds.length === 0) throw new UnusableInput('the service has no chambers');
  await requireAccounts(request);
  return await withVerifier(async (verify) => {
    const signers = { logId: () => service.logId, directory: readOnce(() => readDirectory(service)) };
    const context = auditContext(policy, verify, clock, { originals: await readOriginals(request), signers });
    const given = await readAccounts(request, context);
    const isGiven = given !== undefined;
    const accounts = new WatchedAccounts(given ?? new ServiceAccounts(context, service), { clock, isGiven });
    const chambers: ChamberReport[] = [];
    const unreadable: string[] = [];
    const order = new LogOrder();
    const log = new CheckpointAudit(published, checkpoints, clock);
    const receipts = request.receipts && new ReceiptAudit(service, published, request.receipts);
    const judged: JudgedReceipt[] = [];
    const judge = async (chamberId: number) => {
      const source = serviceSource(baseUrl, { service, log, receipts, unread, clock }, chamberId);
      let read: ReadChamber;
      try {
        read = await readChamber(source, request, context);
      } catch (error) {
        if (only !== undefined && error instanceof Rejected && error.status === NOT_FOUND)
          throw new ForumError('FORUM_ERR_NOT_FOUND', `chamber ${only} not found at ${baseUrl}`);
        // The service must serve each chamber that it lists.
        if (only !== undefined || !(error instanceof UnusableInput)) throw error;
        unreadable.push(`chamber ${chamberId} can’t be audited: ${error.message}`);
        accounting?.note(chamberId, []);
        return;
      }
      const { head, dueHead = head } = read.audit;
      accounting?.note(chamberId, head.eventId === 0 ? [] : [dueHead, head]);
      chambers.push(await judgeChamber(read, source, request, accounts));
      order.take(chamberId, read.audit);
      judged.push(...read.receipts);
    };
    for (const chamberId of chamberIds) await judge(chamberId);
    const listProblems: string[] = [];
    /** Returns the listed chambers that were created during the audit. */
    const created = async () => {
      const unjudged = new Set(await accounting?.catchUp(accounts));
      if (unjudged.size === 0) return [];
      const later = await listWith(unjudged, service, policy);
      listProblems.push(...later.problems);
      accounting?.noteListed(later.chamberIds);
      return later.chamberIds.filter((chamberId) => chamberId > (chamberIds.at(-1) ?? 0) && unjudged.has(chamberId));
    };
    const late = await created();
    for (const chamberId of late) await judge(chamberId);
    // The proofs of late chambers may refer to a larger checkpoint, and the log must contain their members' accounts.
    if (late.length > 0) await created();
    const others =
      (await receipts?.judgeOthers(only === undefined ? new Set([...chamberIds, ...late]) : 'accounts alone')) ?? [];
    const receiptProblems = (wanted: JudgedReceipt['verdict']) =>
      others.flatMap(({ verdict, reason, parsed }) => (verdict === wanted ? [`${parsed.stream}: ${reason}`] : []));
    const proved = (await receipts?.prove(judged, others, options)) ?? [];
    const entryProblems = [
      ...((await accounting?.conclude(accounts)) ?? []),
      ...(accounting?.isReadable ? [] : await log.accountProblems(accounts)),
    ];
    const logProblems = [
      ...order.problems(),
      ...(await checkpoints.problems()),
      ...new Set(entryProblems),
      ...receiptProblems('broken'),
      ...proved,
    ];
    const isPublished = (await checkpoints.find()) !== undefined;
    const unpublished = accounting?.isReadable ? accounting.unpublished : isPublished ? accounts.unpublished : 0;
    const doubts = [
      ...(unpublished > 0 && !policy?.allowUnpublished ? [unpublishedDoubt(unpublished)] : []),
      ...checkpoints.doubts,
      ...(await log.doubts()),
      ...(accounting?.doubts ?? []),
      ...receiptProblems('undecided'),
    ];
    return { problems: [...new Set([...problems, ...listProblems]), ...unreadable, ...logProblems], doubts, chambers };
  });
}

/** Rereads the list until it includes the wanted chambers, up to READS_MAX times: a node may lag behind the publisher. */
async function listWith(wanted: ReadonlySet<number>, service: AuditedService, policy?: AuditPolicy) {
  for (let reads = 1; ; reads++) {
    const list = await service.chambers(policy);
    const listed = new Set(list.chamberIds);
    if (reads === READS_MAX || [...wanted].every((chamberId) => listed.has(chamberId))) return list;
    await sleep(READ_PAUSE_MS);
  }
}

function unpublishedDoubt(count: number): string {
  const [entries, are] = count === 1 ? ['1 entry of the log has', 'is'] : [`${count} entries of the log have`, 'are'];
  return `${entries} no line that the service serves, and ${are} attributed to accounts of a release before schema 4, which did not publish all account lines: use --allow-unpublished if the service ran such a release`;
}

function optionsOf({ log }: AuditRequest): CheckpointOptions {
  return log ?? { keptNotes: [], proofs: new ProofFolder() };
}

interface Source {
  readonly name: string;
  /** undefined selects the chamber with the most lines. */
  readonly chamberId: number | undefined;
  readonly logId: () => string | null;
  readonly lines: () => AsyncIterable<RawLine>;
  readonly isRepeatable: () => boolean;
  /** Converts a byte count to a share of the input between 0 and 1; undefined if the input's size is unknown. */
  readonly shareOf: (bytes: number) => number | undefined;
  readonly compareViews: (audit: ChamberAudit) => Promise<void>;
  readonly receipts?: ReceiptAudit | undefined;
}

async function fileSource(path: string, request: AuditRequest): Promise<Source> {
  const limits = { ...INPUT_LIMITS, ...request.limits };
  const input = path === '-' ? new KeptInput(process.stdin) : fileInput(path, await sizeOf(path));
  const { size } = input;
  return {
    name: path,
    chamberId: request.chamberId,
    logId: () => null,
    lines: () => countLimited(readLines(input.read(), limits), { linesMax: limits.linesMax, option: '--max-lines' }),
    isRepeatable: () => input.isRepeatable,
    shareOf: (bytes) => size && bytes / size,
    compareViews: async ({ findings }) => {
      const why = 'the input is a file: audit the URL of a service to compare its responses';
      findings.notEvaluated({ needs: 'service', why }, 'preview', 'views', 'checkpoint', 'witnesses');
    },
  };
}

interface Audited {
  readonly service: AuditedService;
  readonly log: CheckpointAudit;
  readonly receipts: ReceiptAudit | undefined;
  /** Why the log's entries are not read. */
  readonly unread: Reason | undefined;
  readonly clock: AuditClock;
}

function serviceSource(baseUrl: string, audited: Audited, chamberId: number): Source {
  const { service, log, receipts, unread, clock } = audited;
  let readFrom = clock.now();
  return {
    name: baseUrl,
    chamberId,
    logId: () => service.logId,
    lines: () => {
      readFrom = clock.now();
      return service.lines(chamberId, 0);
    },
    isRepeatable: () => true,
    shareOf: () => undefined,
    compareViews: async (audit) => {
      await compareViews(audit, { service, chamberId, readFrom });
      await log.compare(audit, chamberId, unread);
    },
    receipts,
  };
}

const NO_RECEIPTS = { needs: 'receipts', why: 'use --receipts to compare your kept receipts' } as const;

interface ReadChamber {
  readonly audit: ChamberAudit;
  readonly receipts: readonly JudgedReceipt[];
  /** Takes account lines too; undefined without receipts. */
  readonly checks: ReceiptChecks | undefined;
  /** The chamber's roots on the chain before its last lines were read; undefined if no chain was asked. */
  readonly roots: readonly Hex[] | undefined;
}

async function readChamber(
  source: Source,
  request: AuditRequest,
  context: AuditContext,
  assumptions?: Assumptions,
): Promise<ReadChamber> {
  const { chamberId } = source;
  const receipts = request.receipts && new ReceiptChecks(request.receipts);
  const audit = new ChamberAudit({
    moves: new CrossCheckedTree(),
    chamberId,
    context,
    assumptions,
    onEvent: (...taken) => {
      receipts?.take(...taken);
      source.receipts?.take(...taken);
    },
  });
  const { findings, decisions } = audit;
  let bytes = 0;
  await audit.takeAll(source.lines(), (line) => {
    bytes += line.bytes.length + 1;
    request.onProgress?.(audit.lineCount, source.shareOf(bytes));
  });
  // The roots are read before the last lines, so the lines include every move covered by a root.
  const id = chamberId ?? decisions.state?.chamberId;
  const roots = id === undefined ? undefined : await request.chain?.rootsOf(id).catch(noReport);
  await source.compareViews(audit);
  const judged = receipts?.judge(chamberId ?? decisions.state?.chamberId, await source.receipts?.terms());
  if (judged === undefined) findings.notEvaluated(NO_RECEIPTS, 'receipts');
  else await reportReceipts(findings, judged, optionsOf(request).proofs);
  audit.conclude({ asksChain: request.chain !== undefined });
  return { audit, receipts: judged ?? [], checks: receipts, roots };
}

/** Compares the chamber with the chain and the accounts, and separates causes from consequences in further passes. */
async function judgeChamber(read: ReadChamber, source: Source, request: AuditRequest, accounts?: Accounts) {
  const { audit } = read;
  const { chain, asksOutcome = false } = request;
  await askChain(read, source, chain);
  await compareAccounts(audit, accounts, await contractJudge(chain, request.policy));
  for (const proof of audit.stubs.proofs) {
    const kept = await optionsOf(request).proofs.keep(proof);
    if (kept !== undefined) audit.findings.judge('withheld', [], provedBy(kept));
  }
  const readAgain = async (assumptions: Assumptions) => {
    const again = await readChamber(source, request, rerunContext(audit.context), assumptions);
    await askChain(again, source, chain);
    return again.audit;
  };
  const diagnosis = await diagnose(audit, async (assumptions) =>
    source.isRepeatable() ? await readAgain(assumptions).catch(noReport) : undefined,
  );
  const { name, chamberId = null } = source;
  return toReport(audit, {
    source: name,
    chamberId,
    logId: source.logId(),
    diagnosis,
    now: audit.context.clock.now(),
    asksOutcome,
  });
}

/** Loads the chain code only if needed, because it takes 30 MB. */
async function askChain({ audit, roots }: ReadChamber, { chamberId }: Source, chain?: AuditedChain): Promise<void> {
  const { findings, balanceClaims, decisions } = audit;
  if (chain !== undefined) {
    const { compareChain } = await import('./chain/compare-chain.ts');
    return await compareChain(audit, chain, chamberId ?? decisions.state?.chamberId, { roots });
  }
  const reason = { needs: 'chain', why: 'use --rpc and --registry to query the chain' } as const;
  findings.notEvaluated(reason, 'contract', 'claims');
  for (const _ of balanceClaims) findings.notEvaluated(reason, 'balances');
}

async function contractJudge(chain?: AuditedChain, policy: AuditPolicy = {}): Promise<JudgeContractProof | undefined> {
  if (chain === undefined) return undefined;
  const { judgeContractProof } = await import('./chain/contract-signatures.ts');
  return (proof) => judgeContractProof(proof, { chain, policy });
}

/** If the input can't be read again, the findings of the first pass remain. */
function noReport(error: unknown): undefined {
  if (error instanceof UnusableInput || error instanceof Unreachable) return undefined;
  throw error;
}

const BATCH_SIGNATURES = 64;
/** Starting a thread costs as much as verifying a few hundred signatures; most chambers have fewer. */
const THREADS_AFTER_SIGNATURES = 256;

/** Provides a verifier that uses node:crypto, or libsodium on worker threads if there are many signatures. */
async function withVerifier<Result>(work: (verify: Verify) => Promise<Result>): Promise<Result> {
  const verifier = createVerifier({ batchJobsMax: BATCH_SIGNATURES, threadsAfter: THREADS_AFTER_SIGNATURES });
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

async function readAccounts(
  { accounts: path, limits }: AuditRequest,
  context: AuditContext,
  listed: ListedOptions = {},
): Promise<Accounts | undefined> {
  if (path === undefined) return undefined;
  const lines = readLines(createReadStream(path), { ...INPUT_LIMITS, ...limits });
  return await listedAccounts(lines, context, listed);
}

/** Throws UnusableInput if the file can't be read or contains lines that are not events. */
async function readOriginals({ originals: path, limits }: AuditRequest): Promise<Originals | undefined> {
  if (path === undefined) return undefined;
  const originals = new Originals();
  await sizeOf(path).catch((error: Error) => {
    throw new UnusableInput(`--originals=${path}: ${error.message}`);
  });
  const lines = readLines(createReadStream(path), { ...INPUT_LIMITS, ...limits });
  const unreadable = await originals.takeAll(countLimited(lines, { ...ORIGINALS, ...limits }));
  if (unreadable > 0) throw new UnusableInput(`--originals=${path}: ${unreadable} of its lines are not events`);
  return originals;
}

/** Originals are kept in memory, hence the limit. */
const ORIGINALS = { linesMax: 100_000, option: '--max-lines' } as const;

async function readDirectory(service: AuditedService): Promise<KeyDirectory | undefined> {
  const response = await service.read(DIRECTORY_PATH).catch(orUndefined);
  return response && parseDirectory(response.body);
}

function readOnce<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined;
  return () => {
    value ??= read();
    return value;
  };
}

async function sizeOf(path: string): Promise<number> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    const hint = /^\d+$/.test(path) ? `; to audit a chamber of a service, use URL --chamber=${path}` : '';
    throw new UnusableInput(error.code === 'ENOENT' ? `file not found${hint}` : `it can’t be read: ${error.code}`);
  });
  if (stats.isDirectory()) throw new UnusableInput('it is a directory, not a file');
  return stats.size;
}
