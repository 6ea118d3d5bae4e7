// Compares a chamber's lines with the published log: a checkpoint signed by the log's key and cosigned by the witnesses must cover
// the last event, which pins all earlier ones.
import { isPinned, type SignedCheckpoint, UNPINNED, verifyTlogProof } from '../../tlog/proof.ts';
import { fromHex, type PinnedKeys } from '../../vocabulary/values.ts';
import type { StreamHead, WatchedAccounts } from '../account/watched-accounts.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import { type AuditClock, isDue } from '../context.ts';
import type { Findings, Reason } from '../report/findings.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { LogKey, ServiceLog } from './service-log.ts';

/** Compares the chambers of a service, oldest first. */
export class CheckpointAudit {
  readonly #published: ServiceLog;
  readonly #checkpoints: Checkpoints;
  readonly #clock: AuditClock;
  /** Account lines that no cosigned checkpoint covers. */
  readonly #uncosigned: string[] = [];
  /** The newest chamber that records service keys. */
  #newest: { readonly chamberId: number; readonly pinnedKeys: PinnedKeys } | undefined;

  constructor(published: ServiceLog, checkpoints: Checkpoints, clock: AuditClock) {
    this.#published = published;
    this.#checkpoints = checkpoints;
    this.#clock = clock;
  }

  /** `unread` is the reason why the log's entries are not read. */
  async compare(audit: ChamberAudit, chamberId: number, unread: Reason | undefined): Promise<void> {
    const { findings, pinnedKeys } = audit;
    if (pinnedKeys !== undefined) this.#newest = { chamberId, pinnedKeys };
    const log = await this.#checkpoints.find();
    if (log === undefined) return judgeWithoutLog(findings, pinnedKeys);
    const { eventId, problem, checkpoint } = await this.#prove(audit, chamberId, log);
    if (problem !== undefined) findings.judge('checkpoint', [], problem);
    if (unread !== undefined) findings.notEvaluated(unread, 'checkpoint');
    if (eventId !== audit.head.eventId)
      findings.notEvaluated({ needs: 'later lines', why: NOT_YET(audit.head.eventId) }, 'checkpoint');
    if (checkpoint !== undefined && !isPinned(log.key, pinnedKeys))
      findings.notEvaluated({ needs: 'later lines', why: UNPINNED }, 'checkpoint');
    else if (checkpoint !== undefined) findings.judge('checkpoint', []);
    this.#judgeWitnesses(findings, checkpoint, { isSoFar: problem === undefined, isDue: audit.dueHead !== undefined });
  }

  /** Returns the last event that the log is proved to contain; 0 if no event must be in the log yet. */
  async #prove({ head, dueHead }: ChamberAudit, chamberId: number, log: LogKey): Promise<Proved> {
    const another = this.#published.logProblem(log);
    if (another !== undefined) return { eventId: head.eventId, problem: another };
    for (const each of dueHead === undefined || dueHead.eventId === head.eventId ? [head] : [head, dueHead]) {
      const proof = await this.#readProof(chamberId, each, log);
      if (proof === undefined) continue;
      const { eventId } = each;
      const { checkpoint } = proof;
      const problem = `the service does not prove that event ${eventId} of the lines is in its log`;
      if (checkpoint === undefined) return { eventId, problem };
      return { eventId, checkpoint };
    }
    if (dueHead === undefined) return { eventId: 0 };
    return { eventId: head.eventId, problem: `event ${dueHead.eventId} ${OVERDUE}` };
  }

  /** Waits for a proof under a cosigned checkpoint. Resolves to undefined without a proof; `checkpoint` is undefined if it is invalid. */
  async #readProof(stream: number | string, { eventId, leaf }: Pick<StreamHead, 'eventId' | 'leaf'>, { key }: LogKey) {
    const open = (text: string) => verifyTlogProof(text, fromHex(leaf), key);
    const text = await this.#published.tlogProof(stream, eventId, (proof) => {
      const checkpoint = open(proof);
      // An invalid proof counts as broken regardless of cosignatures, so there is nothing to wait for.
      return checkpoint === undefined || this.#checkpoints.isCosigned(checkpoint);
    });
    const checkpoint = text === undefined ? undefined : open(text);
    if (checkpoint !== undefined) this.#checkpoints.take(checkpoint);
    return text === undefined ? undefined : { checkpoint };
  }

  #judgeWitnesses(
    findings: Findings,
    checkpoint: SignedCheckpoint | undefined,
    { isSoFar, isDue }: { readonly isSoFar: boolean; readonly isDue: boolean },
  ): void {
    const { witnessPolicy: policy } = this.#checkpoints.options;
    if (policy === undefined) {
      const why = 'use --witnesses to name the witnesses you trust';
      findings.notEvaluated({ needs: 'witnesses', why }, 'witnesses');
      return;
    }
    if (checkpoint === undefined) {
      const why = 'there is no valid checkpoint';
      if (!isSoFar) findings.notEvaluated({ follows: ['checkpoint'], why }, 'witnesses');
      else if (policy.isQuorum(new Set())) findings.notEvaluated({ needs: 'later lines', why }, 'witnesses');
      else findings.undecided('witnesses', `no checkpoint covers the chamber yet: ${ASK_AGAIN}`);
      return;
    }
    if (this.#checkpoints.isCosigned(checkpoint)) {
      findings.judge('witnesses', []);
      return;
    }
    const { length } = this.#checkpoints.cosignersOf(checkpoint);
    const problem = `the checkpoint of size ${checkpoint.size} is cosigned by ${length} of ${policy.witnesses.length} witnesses, which is not a quorum`;
    // Witnesses may still cosign it if they have cosigned another checkpoint of the log, or if the chamber is not due yet.
    if (isDue && this.#checkpoints.cosignedSize === 0) findings.judge('witnesses', [], problem);
    else findings.undecided('witnesses', `${problem}: ${ASK_AGAIN}`);
  }

  /** Open questions for the caller about the identity of the log. */
  async doubts(): Promise<readonly string[]> {
    const log = await this.#checkpoints.find();
    const { witnessPolicy } = this.#checkpoints.options;
    if (log === undefined) return witnessPolicy === undefined || witnessPolicy.logs.length > 0 ? [] : [NO_LOG];
    if (this.#checkpoints.isTrusted(log)) return this.#uncosigned;
    const line = `name it in --witnesses (log ${log.verifierKey}) if it is`;
    const { chamberId, pinnedKeys } = this.#newest ?? {};
    const doubts: string[] = [...this.#uncosigned];
    if (!isPinned(log.key, pinnedKeys))
      doubts.push(
        `the key of the log differs from the one recorded by chamber ${chamberId}, the newest chamber read, and may not be the service’s: ${line}`,
      );
    if (witnessPolicy !== undefined)
      doubts.push(
        `the policy of --witnesses names no log, so the service may show other readers a different log, which the witnesses cosign as well; ${log.key.name} may not be its only log: ${line}`,
      );
    return doubts;
  }

  /** Returns contradictions between the log and the accounts used to judge a single chamber. */
  async accountProblems(accounts: WatchedAccounts): Promise<readonly string[]> {
    const log = await this.#checkpoints.find();
    const problems: string[] = [];
    for (const did of log === undefined ? [] : accounts.dids) {
      const problem = accounts.contradictionOf(did) ?? (log && (await this.#accountProblem(did, accounts, log)));
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  /** A line written within the last minute may not be covered yet. */
  async #accountProblem(did: string, accounts: WatchedAccounts, log: LogKey): Promise<string | undefined> {
    for (const { eventId, leaf, at } of accounts.watched(did).heads) {
      const named = `event ${eventId} of the account of ${did}`;
      const proof = await this.#readProof(did, { eventId, leaf }, log);
      if (proof?.checkpoint !== undefined) {
        if (isDue(at, this.#clock) && !this.#checkpoints.isCosigned(proof.checkpoint))
          this.#uncosigned.push(`${named} ${UNCOSIGNED}`);
      } else if (proof !== undefined) return `the service does not prove that ${named} is in its log`;
      else if (isDue(at, this.#clock)) return `${named} ${OVERDUE}`;
    }
    return undefined;
  }
}

interface Proved {
  readonly eventId: number;
  readonly checkpoint?: SignedCheckpoint;
  readonly problem?: string;
}

export const OVERDUE = 'is not covered by a checkpoint, although it is more than a minute old';
export const UNCOSIGNED =
  'is not covered by a checkpoint that the witnesses have cosigned, although it is more than a minute old, so other readers may see a different line: audit again in a minute';
const ASK_AGAIN = 'audit again in a minute';
const NO_LOG =
  'the service publishes no log that witnesses could have cosigned: omit --witnesses if its release publishes none';
const NOT_YET = (eventId: StreamHead['eventId']) => `no checkpoint covers event ${eventId} yet`;

/** Earlier releases publish no log and record no keys. */
function judgeWithoutLog(findings: Findings, pinnedKeys: PinnedKeys | undefined): void {
  const why = 'the service publishes no log';
  const problem = `${why}, although event 1 records the key of its checkpoints`;
  if (pinnedKeys !== undefined) findings.judge('checkpoint', [], problem);
  else findings.notEvaluated({ needs: 'service', why }, 'checkpoint');
  const reason: Reason = pinnedKeys === undefined ? { needs: 'service', why } : { follows: ['checkpoint'], why };
  findings.notEvaluated(reason, 'witnesses');
}

const TEXT_LINES_MIN = 3;

/** Splits concatenated notes (lines, an empty line, signature lines). Takes linear time, because the text is untrusted. */
export function splitNotes(text: string): readonly string[] {
  const notes: string[] = [];
  let lines: string[] = [];
  let signatures: string[] = [];
  let isEnded = false;
  const begin = () => {
    if (signatures.length > 0) notes.push(`${[...lines, '', ...signatures].join('\n')}\n`);
    [lines, signatures, isEnded] = [[], [], false];
  };
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (/^\u2014 ./u.test(line)) {
      if (isEnded) signatures.push(line);
      else begin();
    } else if (line === '' && !isEnded && lines.length >= TEXT_LINES_MIN) isEnded = true;
    else {
      if (line === '' || isEnded) begin();
      if (line !== '') lines.push(line);
    }
  }
  begin();
  return notes;
}
