// The outcome of an audit as a value for programs, with its verdict in one sentence.
import { graduates } from '../../projections/allocations.ts';
import type { ChamberState } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import { type Hex, type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { ChamberAudit } from './chamber-audit.ts';
import type { CheckResult, Finding, Verdict } from './findings.ts';
import { type Diagnosis, isOfCopy } from './verdict.ts';

/** report-schema.ts describes it and what contains it to other programs: members are only ever added. */

export interface ChamberReport {
  readonly source: string;
  readonly chamberId: number | null;
  /** The log that the lines belong to, as far as a service says; null for a file. */
  readonly logId: string | null;
  readonly lines: number;
  /** The addresses that its requests were signed for. */
  readonly origins: readonly string[];
  /** How many of the lines are moves, the leaves of the tree: eventCount of the service and of the commitment. */
  readonly moves: number;
  /** Recomputed from the lines. */
  readonly root: Hex | null;
  /** `verified` when nothing is broken or undecided: see `checks` for what was not evaluated. */
  readonly verdict: Exclude<Verdict, 'not evaluated'>;
  /** Moves that nobody signed. */
  readonly unsignedMoves: number;
  /** Of checks; they add up to `total`. */
  readonly counts: CheckResult['counts'] & { readonly total: number };
  /** Every event that a finding names, ascending. */
  readonly brokenEvents: readonly number[];
  /** The verdict for laymen. */
  readonly sentence: string;
  /** What everything else that is broken follows from, in the order of the log. */
  readonly causes: readonly { readonly eventIds: readonly number[]; readonly sentence: string }[];
  readonly checks: readonly ReportedCheck[];
}

export interface ReportedCheck extends CheckResult {
  readonly findings: readonly ReportedFinding[];
}

export interface ReportedFinding extends Finding {
  /** The index of its cause; null for a consequence of the causes, and where the cause was not sought. */
  readonly cause: number | null;
  readonly isConsequence: boolean;
}

/** Of a service: what is wrong with its list, and its chambers. */
export interface ServiceReport {
  readonly problems: readonly string[];
  readonly chambers: readonly ChamberReport[];
}

/** Of everything that was audited: what --json prints. */
export interface AuditReport extends ServiceReport {
  readonly source: string;
  readonly verdict: ChamberReport['verdict'];
  readonly sentence: string;
}

export function toAuditReport(source: string, { problems, chambers }: ServiceReport): AuditReport {
  const broken = chambers.filter(({ verdict }) => verdict === 'broken');
  const undecided = chambers.filter(({ verdict }) => verdict === 'undecided');
  const isBroken = problems.length > 0 || broken.length > 0;
  const verdict = isBroken ? 'broken' : undecided.length > 0 ? 'undecided' : 'verified';
  const [first] = isBroken ? broken : undecided;
  const sentences = problems.map((problem) => `${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`).slice(0, 1);
  if (problems.length > 1) sentences.push(`The list has ${problems.length} such problems.`);
  if (chambers.length === 1)
    sentences.push(...chambers.map(({ sentence }) => sentence).filter(() => first || !isBroken));
  else if (first !== undefined) {
    const count = isBroken ? broken.length : undecided.length;
    sentences.push(`${count} of ${chambers.length} chambers ${count === 1 ? 'is' : 'are'} ${verdict}.`);
    sentences.push(`Chamber ${first.chamberId}: ${first.sentence}`);
  } else if (!isBroken) {
    const reserved = chambers.filter(({ sentence }) => sentence !== SOUND);
    const [one] = reserved;
    sentences.push(
      one === undefined
        ? SOUND
        : `Sound, with ${reserved.length} reservations; chamber ${one.chamberId}: ${one.sentence}`,
    );
  }
  return { source, verdict, sentence: sentences.join(' '), problems, chambers };
}

const SOUND = 'Sound.';

interface Origin extends Pick<ChamberReport, 'source' | 'chamberId' | 'logId'> {
  readonly diagnosis: Diagnosis;
  readonly now: Millis;
}

export function toReport(audit: ChamberAudit, { source, chamberId, logId, diagnosis, now }: Origin): ChamberReport {
  const told = tell(diagnosis);
  const checks = audit.findings.results().map((check) => withCauses(check, told));
  const count = (verdict: Verdict) => checks.filter((check) => check.verdict === verdict).length;
  const [broken, undecided] = [count('broken'), count('undecided')];
  const named = new Set(checks.flatMap(({ findings }) => findings.flatMap(({ eventIds }) => eventIds)));
  return {
    source,
    chamberId: chamberId ?? audit.decisions.state?.chamberId ?? null,
    logId,
    origins: audit.context.origins.found,
    lines: audit.lineCount,
    moves: audit.moves.size,
    root: audit.moves.root(),
    verdict: broken > 0 ? 'broken' : undecided > 0 ? 'undecided' : 'verified',
    unsignedMoves: audit.unsignedMoves,
    counts: {
      verified: count('verified'),
      broken,
      undecided,
      notEvaluated: count('not evaluated'),
      total: checks.length,
    },
    brokenEvents: [...named].sort((a, b) => a - b),
    sentence: verdictOf(audit, checks, { diagnosis, now, logId }),
    causes: diagnosis.causes.map(({ eventIds, sentence }) => ({ eventIds, sentence })),
    checks,
  };
}

type Told = Pick<ReportedFinding, 'cause' | 'isConsequence'>;

/** What the diagnosis says of each finding. */
function tell({ causes, consequences }: Diagnosis): ReadonlyMap<Finding, Told> {
  const told = new Map<Finding, Told>();
  for (const [cause, { findings }] of causes.entries()) {
    for (const { finding } of findings) told.set(finding, { cause, isConsequence: false });
  }
  for (const { finding } of consequences) told.set(finding, { cause: null, isConsequence: true });
  return told;
}

function withCauses(check: CheckResult, told: ReadonlyMap<Finding, Told>): ReportedCheck {
  const unknown = { cause: null, isConsequence: false };
  return { ...check, findings: check.findings.map((finding) => ({ ...finding, ...(told.get(finding) ?? unknown) })) };
}

type Judged = Pick<Origin, 'diagnosis' | 'now' | 'logId'>;

function verdictOf(audit: ChamberAudit, checks: readonly CheckResult[], judged: Judged): string {
  if (judged.diagnosis.causes.length > 0) return brokenSentence(judged.diagnosis);
  const open = checks.filter(({ verdict }) => verdict === 'undecided').map(({ note }) => note ?? '');
  const reservation = reservationOf(audit, judged);
  if (open.length === 0) return reservation === undefined ? SOUND : `Sound, but ${reservation}.`;
  const things = open.length === 1 ? '1 thing' : `${open.length} things`;
  return `Nothing is broken, ${things} could not be decided: ${[...new Set(open)].join('; ')}.`;
}

function brokenSentence({ causes, consequences, others }: Diagnosis): string {
  const sentences = [causes[0]?.sentence];
  const more = causes.length - 1;
  if (more > 0) sentences.push(more === 1 ? 'There is 1 more cause' : `There are ${more} more causes`);
  const [count, left] = [consequences.length, others.length];
  const them = more > 0 ? 'them' : 'it';
  if (count > 0)
    sentences.push(
      count === 1 ? `1 further finding follows from ${them}` : `${count} further findings follow from ${them}`,
    );
  if (left > 0) sentences.push(left === 1 ? 'There is 1 further finding' : `There are ${left} further findings`);
  if (causes.every(({ findings }) => findings.every(isOfCopy)) && count + left === 0)
    sentences.push('Nothing else is broken');
  return sentences.map((sentence) => `${sentence}.`).join(' ');
}

/** A service settles a chamber within minutes. */
const SETTLEMENT_GRACE_MILLIS = 3_600_000;

function reservationOf(audit: ChamberAudit, { now, logId }: Judged): string | undefined {
  const { unsignedMoves, decisions } = audit;
  const { state } = decisions;
  const isCopy = logId === null;
  if (unsignedMoves > 0) return `nobody signed ${unsignedMoves} of the moves`;
  const end = state?.deadlines.allocateRevealDeadline ?? now;
  if (state === null || now < end + SETTLEMENT_GRACE_MILLIS) return undefined;
  if (state.settlement.committed !== null) return waitingSentence(state);
  const ended = `the chamber ended at ${toTimestamp(end)}, and no line commits its root`;
  return isCopy ? `the copy is probably cut: ${ended}` : ended;
}

function waitingSentence(state: ChamberState): string | undefined {
  const waiting = graduates(state).filter(({ ideaId }) => deploymentOf(state.settlement, ideaId).outcome === null);
  const names = waiting.map(({ ideaId }) => ideaId).join(', ');
  return waiting.length === 0 ? undefined : `no line says what became of graduated ideas: ${names}`;
}
