// Runs the auditor over a chamber's lines as they arrive: the checks of `chambers audit`, but for what needs the chain.
import { ChamberAudit } from '../../audit/chamber-audit.ts';
import type { MoveTree } from '../../audit/merkle-root.ts';
import { type Accumulator, appendLeaf, EMPTY_TREE, rootOf } from '../../crypto/merkle.ts';
import { type Hex, toHex } from '../../vocabulary/values.ts';
import type { Audit } from '../live-view.ts';
import { SignatureCache } from './signature-cache.ts';

/** What the page says to this worker. */
export interface AuditMessage {
  readonly chamberId: number;
  /** The URL of merkle-preview. */
  readonly preview: string;
  readonly lines: readonly string[];
}

const REPORT_EVERY_MILLIS = 100;
/** Signatures of so many lines are verified at once. */
const BATCH_LINES = 100;
const PREVIEW_EVERY_MILLIS = 2_000;

class MoveAccumulator implements MoveTree {
  #tree: Accumulator = EMPTY_TREE;

  get size(): number {
    return this.#tree.size;
  }

  push(leaf: Uint8Array): void {
    this.#tree = appendLeaf(this.#tree, leaf).tree;
  }

  root(): Hex | null {
    return this.size === 0 ? null : toHex(rootOf(this.#tree));
  }
}

const utf8 = new TextEncoder();
const signatures = new SignatureCache();
const moves = new MoveAccumulator();
const queue: string[] = [];
let audit: ChamberAudit | undefined;
let failure: string | null = null;
let isRunning = false;
let reportedAt = 0;
let comparedAt = Number.NEGATIVE_INFINITY;
let comparedSize = 0;

addEventListener('message', ({ data }: MessageEvent<AuditMessage>) => {
  audit ??= new ChamberAudit({ chamberId: data.chamberId, moves, verify: signatures.verify });
  queue.push(...data.lines);
  if (isRunning || failure !== null) return;
  isRunning = true;
  void run(audit, data.preview)
    .catch((error: unknown) => {
      failure = `These lines can't be checked: ${error instanceof Error ? error.message : String(error)}`;
    })
    .finally(() => {
      isRunning = false;
      if (audit !== undefined) report(audit);
    });
});

async function run(audit: ChamberAudit, preview: string): Promise<void> {
  while (queue.length > 0 || (await comparePreview(audit, preview))) {
    const batch = queue.splice(0, BATCH_LINES);
    await signatures.prepare(batch);
    for (const line of batch) await take(audit, line);
    if (queue.length === 0 || performance.now() - reportedAt > REPORT_EVERY_MILLIS) report(audit);
  }
}

async function take(audit: ChamberAudit, line: string): Promise<void> {
  const due = audit.lineCount + 1;
  await audit.take({ bytes: utf8.encode(line), isEnded: true });
  // The auditor reports what is missing once the input has ended; a stream does not end.
  const [, eventId] = /"eventId":(\d+)/.exec(line) ?? [];
  if (eventId !== undefined && Number(eventId) > due) {
    audit.findings.judge('order', [due], `event ${due} is missing: the service sent event ${eventId} in its place`);
  }
}

/** Judges whether the service names the root of these very lines. Returns whether more lines came meanwhile. */
async function comparePreview({ findings }: ChamberAudit, preview: string): Promise<boolean> {
  const size = moves.size;
  if (size === comparedSize || performance.now() - comparedAt < PREVIEW_EVERY_MILLIS) return false;
  comparedAt = performance.now();
  const response = await fetch(preview).catch(() => undefined);
  if (!response?.ok) return queue.length > 0;
  const { root, eventCount } = (await response.json()) as { readonly root: string; readonly eventCount: number };
  if (eventCount === size) {
    comparedSize = size;
    const problem = `the service names the root ${root}, but the root of these ${size} moves is ${moves.root()}`;
    findings.judge('preview', [], root !== moves.root() && problem);
  }
  return queue.length > 0;
}

function report(audit: ChamberAudit): void {
  reportedAt = performance.now();
  const checks = audit.findings
    .results()
    .filter(({ counts }) => counts.verified + counts.broken + counts.notEvaluated > 0);
  postMessage({ checked: audit.lineCount, results: checks, failure } satisfies Audit);
}
