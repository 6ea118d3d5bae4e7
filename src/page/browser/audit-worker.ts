// Runs the auditor over a chamber's lines as they arrive, or over a file: the checks of `chambers audit`, those of a chain that the reader
// names, those of the published log, and the root in the page's address.
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
import { askForJson } from './ask.ts';
import { PublishedCheck, type PublishedLog, shownCheck } from './published-check.ts';

/** A service's chamber, or a file. */
export interface AuditJob {
  readonly chamberId?: number;
  /** The URL of merkle-preview. */
  readonly preview?: string;
  readonly published?: PublishedLog;
  readonly named?: NamedRoot | undefined;
  readonly chain?: NamedChain | undefined;
  readonly file?: File;
}

/** A message of the page; the job is always the same. */
export interface AuditMessage {
  readonly job: AuditJob;
  readonly lines: readonly string[];
}

const REPORT_EVERY_MILLIS = 100;
const PREVIEW_EVERY_MILLIS = 2_000;
const CHECKPOINT_MILLIS = 2_000;
/** The backoff of failed reads begins here, because the chain's reader has retried several times itself. */
const CHAIN_FAILURES_FIRST = 5;
const STARTED_LINES_MAX = 512;

const encoder = new TextEncoder();
const queue: string[] = [];
let audit: ChamberAudit | undefined;
let link: ShownCheck | undefined;
let failure: string | null = null;
let isRunning = false;
/** The comparison with the chain. */
let onChain = new Findings();
const NEVER = -1;
let claimsCompared = 0;
let reportedAt = 0;
let comparedSize = 0;
let isPreviewAwaited = false;
/** Failed reads in a row, and the last error. */
let unreadPreviews = 0;
let previewProblem = '';
/** Failed reads in a row. */
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

/** Does the same as auditFile of the command. */
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

/** Signatures are verified while further lines, new arrivals included, are read and decided. */
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

/** The auditor reports missing events at the end of the input; a stream does not end. */
function judgeMissing({ findings, lineCount: due }: ChamberAudit, { event }: StartedLine): void {
  if (event === undefined || event.eventId <= due) return;
  findings.judge('order', [due], `event ${due} is missing: the service sent event ${event.eventId} instead`);
}

/** Compares the moves with the root in the address; called once their number is reached, or can't be. */
function judgeLink({ moves }: ChamberAudit, { size, root }: NamedRoot): void {
  const found = moves.size === size ? `they have the root ${moves.root()}` : `there are only ${moves.size}`;
  const isRight = moves.size === size && moves.root() === root;
  const problem = `history was changed: the link names the root ${root} of the first ${size} moves, but ${found}`;
  const sentence = isRight ? '' : problem;
  link = shownCheck('link', 'the first moves are those that the link names', { isRight, sentence });
}

/** Compares the service's root with that of the lines; tries again later if it covers another number of moves. */
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

/** Empty if the read fails, which proves nothing about the lines: it is read again. */
async function readPreview(url: string): Promise<Preview> {
  try {
    const preview = await askForJson(url);
    if (typeof preview !== 'object' || preview === null) throw new Error('it is not a preview');
    unreadPreviews = 0;
    return preview;
  } catch (error) {
    unreadPreviews++;
    previewProblem = `the service's root could not be read and is read again: ${messageOf(error)}`;
    return {};
  }
}

/** A checkpoint covers a line within a second or two, so it is read after a pause, and again if it is late. */
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

/** Loads the chain reader, which is mostly viem. After a failure the chain is read again. */
async function compareChain(audit: ChamberAudit, job: AuditJob, { rpc, registry }: NamedChain): Promise<void> {
  const { moves, decisions, context } = audit;
  const findings = new Findings({ ofLines: audit.findings });
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
    // The reader of a file can name the chain again.
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
