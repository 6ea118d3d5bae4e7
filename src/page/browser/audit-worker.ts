// Audits a chamber's lines as they arrive, or a file: runs the checks of `chambers audit`, compares the lines with a chain that the reader
// names and with the published log, and checks the root in the page's URL.
import {
  auditContext,
  ChamberAudit,
  checkedVerify,
  createWebVerify,
  readLines,
  type StartedLine,
} from '../../audit/core.ts';
import { Findings } from '../../audit/report/findings.ts';
import { backoffMillis } from '../../reading/waiting.ts';
import { isWalletAddress } from '../../vocabulary/schemas.ts';
import type { Hex } from '../../vocabulary/values.ts';
import type { Audit, NamedChain, NamedRoot, ShownCheck } from '../live-view.ts';
import { PublishedCheck, type PublishedLog, shownCheck } from './published-check.ts';
import { requestJson } from './request.ts';

/** Audits a chamber of the service, or a file. */
export interface AuditJob {
  readonly chamberId?: number;
  /** The URL of merkle-preview. */
  readonly preview?: string;
  readonly published?: PublishedLog;
  readonly named?: NamedRoot | undefined;
  readonly chain?: NamedChain | undefined;
  readonly file?: File;
}

/** A message from the page. The job is the same in every message. */
export interface AuditMessage {
  readonly job: AuditJob;
  readonly lines: readonly string[];
}

const REPORT_EVERY_MILLIS = 100;
const PREVIEW_EVERY_MILLIS = 2_000;
const CHECKPOINT_MILLIS = 2_000;
/** The number of failures at which the backoff starts, because the chain reader has already retried several times. */
const CHAIN_FAILURES_FIRST = 5;
const STARTED_LINES_MAX = 512;

const encoder = new TextEncoder();
const queue: string[] = [];
let audit: ChamberAudit | undefined;
let link: ShownCheck | undefined;
let failure: string | null = null;
let isRunning = false;
/** The findings of the comparison with the chain. */
let onChain = new Findings();
const NEVER = -1;
let claimsCompared = 0;
let reportedAt = 0;
let comparedSize = 0;
let isPreviewAwaited = false;
/** Consecutive failed reads, and the last error. */
let unreadPreviews = 0;
let previewProblem = '';
/** Consecutive failed reads. */
let unreadChains = 0;
let published: PublishedCheck | undefined;
let isCheckpointAwaited = false;

addEventListener('message', ({ data: { job, lines } }: MessageEvent<AuditMessage>) => {
  for (const line of lines) queue.push(line);
  start(job);
});

function start(job: AuditJob): void {
  const { chamberId, chain, file } = job;
  if (job.published !== undefined) published ??= new PublishedCheck(job.published);
  audit ??= new ChamberAudit({
    chamberId,
    context: auditContext(chain && { registries: [chain.registry] }, checkedVerify(createWebVerify())),
  });
  if (isRunning || failure !== null) return;
  isRunning = true;
  (file === undefined ? follow(audit, job) : auditFile(audit, file, job))
    .catch((error: unknown) => {
      failure = `These lines can't be checked: ${messageOf(error)}`;
    })
    .finally(() => {
      isRunning = false;
      if (audit !== undefined) report(audit);
    });
}

/** Audits like the auditFile of the command line. */
async function auditFile(audit: ChamberAudit, file: File, job: AuditJob): Promise<void> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  async function* whole() {
    yield bytes;
  }
  await audit.takeAll(readLines(whole()), () => reportAtTimes(audit));
  audit.conclude();
  const why = 'a file has no service to compare with';
  audit.findings.notEvaluated({ needs: 'service', why }, 'preview', 'views');
  if (job.chain !== undefined) await compareChain(audit, job, job.chain);
}

async function follow(audit: ChamberAudit, job: AuditJob): Promise<void> {
  do {
    await takeQueue(audit, job);
    report(audit);
    await comparePreview(audit, job);
    comparePublished(audit, job);
    if (job.chain === undefined || audit.claims.length === claimsCompared) continue;
    claimsCompared = audit.claims.length;
    await compareChain(audit, job, job.chain);
  } while (queue.length > 0);
}

/** Starts the checks of several lines at once, and finishes them in order, including lines that arrive meanwhile. */
async function takeQueue(audit: ChamberAudit, { named }: AuditJob): Promise<void> {
  const started: StartedLine[] = [];
  for (;;) {
    const lines = queue.splice(0, STARTED_LINES_MAX - started.length);
    for (const line of lines) started.push(audit.start({ bytes: encoder.encode(line), isEnded: true }));
    const next = started.shift();
    if (next === undefined) return;
    await audit.finish(next);
    judgeMissing(audit, next);
    if (named !== undefined && link === undefined && audit.moves.size === named.size) judgeLink(audit, named);
    reportAtTimes(audit);
  }
}

/** Reports a missing event at once. The auditor reports missing events at the end of its input, but a stream does not end. */
function judgeMissing({ findings, lineCount: due }: ChamberAudit, { event }: StartedLine): void {
  if (event === undefined || event.eventId <= due) return;
  findings.judge('order', [due], `event ${due} is missing: the service sent event ${event.eventId} instead`);
}

/** Compares the moves with the root in the URL. Called once the number of moves is reached, or can't be reached. */
function judgeLink({ moves }: ChamberAudit, { size, root }: NamedRoot): void {
  const found = moves.size === size ? `they have the root ${moves.root()}` : `there are only ${moves.size}`;
  const isVerified = moves.size === size && moves.root() === root;
  const problem = `history was changed: the link names the root ${root} of the first ${size} moves, but ${found}`;
  const sentence = isVerified ? '' : problem;
  link = shownCheck('link', 'the first moves are those that the link names', { isVerified, sentence });
}

/** Compares the service's root with the root of the lines. Tries again later if the service's root covers another number of moves. */
async function comparePreview(audit: ChamberAudit, job: AuditJob): Promise<void> {
  const { findings, moves } = audit;
  const { size } = moves;
  if (size === comparedSize || isPreviewAwaited) return;
  isPreviewAwaited = true;
  const { root, eventCount } = await readPreview(job.preview ?? '');
  if (eventCount === size) {
    comparedSize = size;
    const problem = `the service names the root ${root}, but the root of these ${size} moves is ${moves.root()}`;
    findings.judge('preview', [], root !== moves.root() && problem);
    if (job.named !== undefined && size < job.named.size) judgeLink(audit, job.named);
  }
  const pauseMillis = PREVIEW_EVERY_MILLIS + (unreadPreviews > 0 ? backoffMillis(unreadPreviews) : 0);
  setTimeout(() => {
    isPreviewAwaited = false;
    start(job);
  }, pauseMillis);
}

interface Preview {
  readonly root?: unknown;
  readonly eventCount?: unknown;
}

/** Returns an empty preview if the read fails, which proves nothing about the lines. The caller reads it again. */
async function readPreview(url: string): Promise<Preview> {
  try {
    const preview = await requestJson(url);
    if (typeof preview !== 'object' || preview === null) throw new Error('it is not a preview');
    unreadPreviews = 0;
    return preview;
  } catch (error) {
    unreadPreviews++;
    previewProblem = `the service's root could not be read and is read again: ${messageOf(error)}`;
    return {};
  }
}

/** Reads the checkpoint after a delay, because it covers a line only after a second or two, and again if it is late. */
function comparePublished(audited: ChamberAudit, job: AuditJob): void {
  if (published === undefined || job.chamberId === undefined || isCheckpointAwaited || !published.isDue(audited))
    return;
  isCheckpointAwaited = true;
  const { chamberId } = job;
  const compare = async () => {
    if (audit !== undefined) await published?.compare(chamberId, audit);
    isCheckpointAwaited = false;
    start(job);
  };
  setTimeout(() => compare().catch(reportError), CHECKPOINT_MILLIS);
}

/** Loads the chain reader on demand, because it contains viem. After a failure, reads the chain again. */
async function compareChain(audit: ChamberAudit, job: AuditJob, { rpc, registry }: NamedChain): Promise<void> {
  const { moves, decisions, context } = audit;
  const findings = new Findings({ lineFindings: audit.findings });
  const isAddress = isWalletAddress(registry);
  try {
    if (!isAddress) throw new Error('the registry must be an address with a valid checksum');
    const [claims, { AuditedChain }] = await Promise.all([
      import('../../audit/chain/compare-chain.ts'),
      import('../../audit/chain/chain-reader.ts'),
    ]);
    const chain = new AuditedChain(rpc, [registry as Hex]);
    await claims.compareChain(
      { findings, claims: audit.claims, balanceClaims: audit.balanceClaims, moves, decisions, context },
      chain,
      decisions.state?.chamberId,
    );
    unreadChains = 0;
  } catch (error) {
    findings.notEvaluated({ needs: 'chain', why: messageOf(error) }, 'contract', 'claims', 'balances');
    // A reader who opened a file can submit the chain again.
    if (isAddress && job.file === undefined) {
      setTimeout(
        () => {
          claimsCompared = NEVER;
          start(job);
        },
        backoffMillis(CHAIN_FAILURES_FIRST + unreadChains++),
      );
    }
  }
  onChain = findings;
}

const PREVIEW_TITLE = 'merkle-preview is the root of the moves';

function reportAtTimes(audit: ChamberAudit): void {
  if (performance.now() - reportedAt > REPORT_EVERY_MILLIS) report(audit);
}

function report(audit: ChamberAudit): void {
  reportedAt = performance.now();
  const results = [...audit.findings.results(), ...onChain.results()].filter(
    ({ counts }) => counts.verified + counts.broken + counts.notEvaluated > 0,
  );
  const isCompared = results.some(({ name }) => name === 'preview');
  const unread =
    unreadPreviews > 0 && !isCompared ? [shownCheck('preview', PREVIEW_TITLE, { sentence: previewProblem })] : [];
  const checks = [...(link === undefined ? [] : [link]), ...unread, ...(published?.results() ?? []), ...results];
  postMessage({
    checked: audit.lineCount,
    size: audit.moves.size,
    root: audit.moves.root(),
    results: checks,
    note: published?.note,
    failure,
  } satisfies Audit);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
