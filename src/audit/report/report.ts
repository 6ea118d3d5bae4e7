// Builds the audit report as data, including the verdict in one sentence.
import type { ChamberState } from '../../../projections/chamber.ts';
import { undecidedGraduates } from '../../../projections/graduation.ts';
import { outcomeOf } from '../../../projections/outcome.ts';
import { type Millis, toTimestamp } from '../../vocabulary/values.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import type { AuditContext } from '../context.ts';
import type { CheckResult, Verdict } from './findings.ts';
import type { AuditReport, ChamberReport, ReportedCheck, ServiceReport } from './report-types.ts';
import { type Diagnosis, isCopyFinding } from './verdict.ts';
import { namedTexts, withheldIn } from './withheld-texts.ts';

export function toAuditReport(source: string, { problems, doubts = [], chambers }: ServiceReport): AuditReport {
  const broken = chambers.filter(({ verdict }) => verdict === 'broken');
  const undecided = chambers.filter(({ verdict }) => verdict === 'undecided');
  const isBroken = problems.length > 0 || broken.length > 0;
  const isOpen = undecided.length > 0 || doubts.length > 0;
  const verdict = isBroken ? 'broken' : isOpen ? 'undecided' : 'verified';
  const [first] = isBroken ? broken : undecided;
  const withheld = withheldIn(chambers);
  const named = namedTexts(withheld);
  let quoted = first;
  const sentences = (isBroken ? problems : doubts).map(asSentence).slice(0, 1);
  if (!isBroken && doubts.length > 0) sentences.unshift('Nothing is broken.');
  if (problems.length > 1) sentences.push(`There are ${problems.length} such problems in total.`);
  if (chambers.length === 1) {
    if (first === undefined && !isBroken && doubts.length === 0) [quoted] = chambers;
    if (quoted !== undefined) sentences.push(quoted.sentence);
  } else if (first !== undefined) {
    const count = isBroken ? broken.length : undecided.length;
    sentences.push(`${count} of ${chambers.length} chambers ${count === 1 ? 'is' : 'are'} ${verdict}.`);
    sentences.push(`Chamber ${first.chamberId}: ${first.sentence}`);
  } else if (!isBroken && doubts.length === 0) {
    const reserved = chambers.filter(({ reservation }) => reservation !== null);
    [quoted] = reserved;
    sentences.push(
      quoted === undefined
        ? soundBut(named === undefined ? [] : [`for ${named}`])
        : `Sound, with ${reserved.length} reservations; chamber ${quoted.chamberId}: ${quoted.sentence}`,
    );
  }
  const isNamed = quoted === undefined ? verdict === 'verified' : withheldIn([quoted]).count === withheld.count;
  if (!isBroken && named !== undefined && !isNamed) sentences.push(notAudited(named));
  return { source, verdict, sentence: sentences.join(' '), problems, doubts, chambers };
}

function asSentence(problem: string): string {
  return `${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`;
}

function notAudited(texts: string): string {
  return `Not audited: ${texts}.`;
}

function soundBut(reservations: readonly string[]): string {
  return reservations.length === 0 ? 'Sound.' : `Sound, but ${reservations.join('; and ')}.`;
}

interface Origin extends Pick<ChamberReport, 'source' | 'chamberId' | 'logId'> {
  readonly diagnosis: Diagnosis;
  readonly now: Millis;
  readonly asksOutcome?: boolean;
}

export function toReport(
  audit: ChamberAudit,
  { source, chamberId, logId, diagnosis, now, asksOutcome = false }: Origin,
): ChamberReport {
  const checks = withCauses(audit.findings.results(), diagnosis).map((check) => shared(check, audit.context));
  const count = (verdict: Verdict) => checks.filter((check) => check.verdict === verdict).length;
  const [broken, undecided] = [count('broken'), count('undecided')];
  const named = new Set(checks.flatMap(({ findings }) => findings.flatMap(({ eventIds }) => eventIds)));
  const reservation = broken + undecided === 0 ? (reservationOf(audit, { now, logId }) ?? null) : null;
  const { withheldEvents, withheldAccountEvents } = audit;
  const withheld = namedTexts(withheldIn([{ chamberId: null, withheldEvents, withheldAccountEvents }]));
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
    withheldEvents,
    withheldAccountEvents,
    sentence: verdictOf(checks, diagnosis, { withheld, reservation }),
    reservation,
    causes: diagnosis.causes.map(({ eventIds, sentence }) => ({ eventIds, sentence })),
    checks,
    ...(asksOutcome && { outcome: outcomeIn(audit, now) }),
  };
}

/** The outcome as the service serves it; null if an event is lost. */
function outcomeIn({ decisions: { served: state, lostEventId } }: ChamberAudit, now: Millis) {
  return state === null || lostEventId !== undefined ? null : outcomeOf(state, now);
}

function withCauses(checks: readonly CheckResult[], { causes, consequences }: Diagnosis): readonly ReportedCheck[] {
  const causeOf = new Map(causes.flatMap(({ findings }, cause) => findings.map(({ finding }) => [finding, cause])));
  const following = new Set(consequences.map(({ finding }) => finding));
  return checks.map((check) => ({
    ...check,
    findings: check.findings.map((finding) => ({
      ...finding,
      cause: causeOf.get(finding) ?? null,
      isConsequence: following.has(finding),
    })),
  }));
}

const OUTCOMES_MAX = 10_000;

/** Shares equal results among the reports of many chambers, to save memory. */
function shared(check: ReportedCheck, { outcomes }: AuditContext): ReportedCheck {
  if (check.findings.length > 0) return check;
  const key = JSON.stringify(check);
  const known = outcomes.get(key) ?? check;
  if (outcomes.size < OUTCOMES_MAX) outcomes.set(key, known);
  return known;
}

function verdictOf(
  checks: readonly CheckResult[],
  diagnosis: Diagnosis,
  { withheld, reservation }: { readonly withheld: string | undefined; readonly reservation: string | null },
): string {
  if (diagnosis.causes.length > 0) return brokenSentence(diagnosis);
  const open = checks.filter(({ verdict }) => verdict === 'undecided').map(({ note }) => note ?? '');
  if (open.length === 0)
    return soundBut([...(withheld ? [`for ${withheld}`] : []), ...(reservation ? [reservation] : [])]);
  const things = open.length === 1 ? '1 thing' : `${open.length} things`;
  const undecided = `Nothing is broken, but ${things} could not be decided: ${[...new Set(open)].join('; ')}.`;
  return withheld === undefined ? undecided : `${undecided} ${notAudited(withheld)}`;
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
  if (causes.every(({ findings }) => findings.every(isCopyFinding)) && count + left === 0)
    sentences.push('Nothing else is broken');
  return sentences.map((sentence) => `${sentence}.`).join(' ');
}

/** Far longer than a service takes to settle a chamber. */
const SETTLEMENT_GRACE_MILLIS = 3_600_000;

function reservationOf(audit: ChamberAudit, { now, logId }: Pick<Origin, 'now' | 'logId'>): string | undefined {
  const { unsignedMoves, decisions } = audit;
  const { state } = decisions;
  const isCopy = logId === null;
  if (unsignedMoves > 0) return `no signature covers ${unsignedMoves} of the moves`;
  const end = state?.ends.allocateRevealDeadline ?? now;
  if (state === null || now < end + SETTLEMENT_GRACE_MILLIS) return undefined;
  if (state.settlement.committed !== null) return waitingSentence(state);
  const ended = `the chamber ended at ${toTimestamp(end)}, and no line commits its root`;
  return isCopy ? `the copy is probably cut off: ${ended}` : ended;
}

function waitingSentence(state: ChamberState): string | undefined {
  const waiting = undecidedGraduates(state);
  const names = waiting.map(({ ideaId }) => ideaId).join(', ');
  return waiting.length === 0 ? undefined : `no line records the outcome of graduated ideas: ${names}`;
}
