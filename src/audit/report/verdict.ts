// Separates causes from consequences by auditing again under the assumption that the known causes are explained. Findings that vanish
// are consequences; the remaining findings may include further causes.
import type { Assumptions, ChamberAudit } from '../chamber/chamber-audit.ts';
import type { Effect } from '../chamber/decisions.ts';
import type { Leaves } from '../chamber/sequence.ts';
import type { CheckName, CheckResult, Finding, FindingCode } from './findings.ts';

export interface Cause {
  /** Empty if a response or the whole tree is broken. */
  readonly eventIds: readonly number[];
  /** For non-experts; starts with a capital and has no full stop. */
  readonly sentence: string;
  readonly findings: readonly Located[];
}

export interface Located {
  readonly check: CheckName;
  readonly finding: Finding;
}

export interface Diagnosis {
  readonly causes: readonly Cause[];
  readonly consequences: readonly Located[];
  /** Findings left without a known cause after RERUNS_MAX passes. */
  readonly others: readonly Located[];
}

/** Audits the same lines again. Resolves to undefined if they can't be read again. */
export type Rerun = (assumptions: Assumptions) => Promise<ChamberAudit | undefined>;

/** Each rerun is a pass over all lines. */
const RERUNS_MAX = 8;

/** Checks of a single line: their findings are never consequences. */
const LINE_CHECKS: ReadonlySet<CheckName> = new Set([
  'form',
  'order',
  'chamber',
  'digest',
  'signature',
  'target',
  'once',
  'origin',
  'age',
  'registration',
  'withheld',
]);
/** Checks whose findings don't mean that the line was altered. */
const HARMLESS_CHECKS: ReadonlySet<CheckName> = new Set(['origin', 'age', 'registration', 'seen', 'receipts']);
const STATE_CHECKS: ReadonlySet<CheckName> = new Set([
  'rules',
  'payload',
  'service-events',
  'transactions',
  'root',
  'claims',
  'balances',
]);

export async function diagnose(audit: ChamberAudit, rerun: Rerun): Promise<Diagnosis> {
  let others = located(audit.findings.results());
  const causes: Cause[] = [];
  const consequences: Located[] = [];
  const altered = { events: new Map<number, Effect>(), isTree: false };
  for (let runs = 0; others.length > 0 && runs <= RERUNS_MAX; runs++) {
    const found = nextCauses(others, audit.lineCount);
    causes.push(...found);
    const own = new Set(found.flatMap(({ findings }) => findings));
    others = others.filter((each) => !own.has(each));
    for (const cause of found) assumeCause(cause, altered);
    if (others.length === 0 || runs === RERUNS_MAX) break;
    const again = await rerun({ ...altered, leaves: leavesOf(audit, altered.events) });
    if (again === undefined) break;
    const kept = new Set(located(again.findings.results()).map(keyOf));
    const firstAltered = Math.min(...altered.events.keys());
    const isKept = (each: Located) =>
      isLineFinding(each) ||
      isAccountReceipt(each) ||
      (kept.has(keyOf(each)) &&
        !isAboutAny(each, altered.events) &&
        !(isHistoryFinding(each) && subjectOf(each) > firstAltered));
    consequences.push(...others.filter((each) => !isKept(each)));
    others = others.filter(isKept);
  }
  return { causes: causes.sort((a, b) => rankOf(a) - rankOf(b)), consequences, others };
}

/** Orders causes in events first, then causes outside the lines, then changes to the copy. */
function rankOf({ eventIds: [eventId = Number.POSITIVE_INFINITY], findings }: Cause): number {
  return findings.every(isCopyFinding) ? Number.MAX_VALUE : eventId;
}

function located(results: readonly CheckResult[]): readonly Located[] {
  return results.flatMap(({ name, findings }) => findings.map((finding) => ({ check: name, finding })));
}

/** Omits the sentence, which may differ between two runs. */
function keyOf({ check, finding }: Located): string {
  return `${check} ${finding.eventIds.join()}`;
}

function isAboutAny({ finding }: Located, events: ReadonlyMap<number, unknown>): boolean {
  return finding.eventIds.some((eventId) => events.has(eventId));
}

function leavesOf({ trueLeaves }: ChamberAudit, events: ReadonlyMap<number, unknown>): Leaves {
  return new Map([...trueLeaves].filter(([eventId]) => events.has(eventId)));
}

function assumeCause({ eventIds, findings }: Cause, altered: { events: Map<number, Effect>; isTree: boolean }): void {
  if (findings.every(isHarmless)) return;
  if (eventIds.length === 0 && findings.some(({ check }) => check === 'root')) altered.isTree = true;
  for (const eventId of eventIds) altered.events.set(eventId, effectOf(findings));
}

/** If body and payload agree, the agent or the time was altered, so the event's effect is unknown. */
function effectOf(findings: readonly Located[]): Effect {
  const has = (name: CheckName) => findings.some(({ check }) => check === name);
  if (findings.some((each) => hasCode(each, 'another-signer')) || has('chamber')) return 'unknown';
  if (has('digest') || has('signature') || has('target')) return 'payload';
  return has('payload') || !has('chain') ? 'request' : 'unknown';
}

/** A finding about two contradictory events does not count, because either may have been altered. */
function isLineFinding({ check, finding }: Located): boolean {
  const isAboutTwoEvents = check === 'registration' || check === 'withheld';
  return LINE_CHECKS.has(check) && (!isAboutTwoEvents || finding.eventIds.length === 1);
}

/** Each leaf pins all earlier lines, so these findings follow from any earlier alteration. */
function isHistoryFinding({ check }: Located): boolean {
  return check === 'seen' || check === 'receipts';
}

/** A finding about an account's receipt, which a rerun can't repeat: account lines are read once. */
function isAccountReceipt({ check, finding }: Located): boolean {
  return check === 'receipts' && finding.eventIds.length === 0;
}

function isHarmless(each: Located): boolean {
  return HARMLESS_CHECKS.has(each.check) || isCopyFinding(each);
}

export function isCopyFinding(each: Located): boolean {
  return hasCode(each, 'copy');
}

function hasCode({ finding }: Located, code: FindingCode): boolean {
  return finding.code === code;
}

/** Returns all causes that are certain without another run; otherwise the first unexplained event, or a cause outside the lines. */
function nextCauses(findings: readonly Located[], lineCount: number): readonly Cause[] {
  const certain = certainCauses(findings, lineCount);
  if (certain.length > 0) return certain;
  const [first] = findings.filter(({ check }) => STATE_CHECKS.has(check)).sort((a, b) => subjectOf(a) - subjectOf(b));
  if (first !== undefined) {
    const treeFindings = findings.filter(isTreeFinding);
    if (treeFindings.includes(first) && isTreeCause(treeFindings)) return [toCause([], treeFindings)];
    const eventId = subjectOf(first);
    const own = findings.filter((each) => STATE_CHECKS.has(each.check) && subjectOf(each) === eventId);
    return [toCause(Number.isFinite(eventId) ? [eventId] : [], own)];
  }
  const [other] = findings;
  if (other === undefined) return [];
  if (other.check === 'time') return [toCause([subjectOf(other)], [other])];
  if (isHistoryFinding(other)) {
    const own = findings.filter(isHistoryFinding);
    const eventId = Math.min(...own.map(subjectOf));
    return [toCause(Number.isFinite(eventId) ? [eventId] : [], own)];
  }
  const own = findings.filter(({ check }) => check === other.check);
  return [toCause([], own)];
}

/** Groups findings of single lines by event, and adds the line that each broken link of the hash chain implicates. */
function certainCauses(findings: readonly Located[], lineCount: number): readonly Cause[] {
  const groups = new Map<number, { readonly ids: readonly number[]; readonly own: Located[] }>();
  const add = (ids: readonly number[], each: Located) => {
    const [first = 0] = ids;
    const group = groups.get(first) ?? { ids, own: [] };
    groups.set(first, group);
    group.own.push(each);
  };
  for (const each of findings) if (isLineFinding(each)) add(idsOf(each), each);
  const altered = new Set(groups.keys());
  const suspects = new Set(findings.filter(({ check }) => STATE_CHECKS.has(check)).map(subjectOf));
  const links = findings.filter(({ check }) => check === 'chain').sort((a, b) => subjectOf(a) - subjectOf(b));
  const broken = new Set(links.map(subjectOf));
  for (const link of links) {
    const ids = implicatedBy(subjectOf(link), { altered, suspects, broken, lineCount });
    for (const id of ids) altered.add(id);
    add(ids, link);
  }
  const stateFindings = findings.filter(({ check }) => STATE_CHECKS.has(check));
  return [...groups.values()].map(({ ids, own }) => {
    const isAltered = !own.every(isHarmless);
    return toCause(ids, [...own, ...stateFindings.filter((each) => isAltered && ids.includes(subjectOf(each)))]);
  });
}

interface LinkContext {
  /** Events that checks of single lines have shown to be altered. */
  readonly altered: ReadonlySet<number>;
  /** Events that contradict the preceding state, which may be a consequence of another altered line. */
  readonly suspects: ReadonlySet<number>;
  readonly broken: ReadonlySet<number>;
  readonly lineCount: number;
}

/** Returns the altered event of a broken link: the previous event, unless the evidence points to the event itself. */
function implicatedBy(eventId: number, context: LinkContext): readonly number[] {
  const { altered, suspects, broken, lineCount } = context;
  if (altered.has(eventId - 1) || suspects.has(eventId - 1)) return [eventId - 1];
  if (eventId === 1 || broken.has(eventId + 1) || altered.has(eventId)) return [eventId];
  return eventId < lineCount ? [eventId - 1] : [eventId - 1, eventId];
}

function idsOf(each: Located): readonly number[] {
  const isRange = each.check === 'order' && !hasCode(each, 'late');
  return isRange ? each.finding.eventIds : [subjectOf(each)];
}

/** The event at fault; Infinity if there is none. */
function subjectOf({ check, finding: { eventIds } }: Located): number {
  const isLaterAtFault = check === 'once' || check === 'chain' || check === 'time';
  return (isLaterAtFault ? eventIds.at(-1) : eventIds[0]) ?? Number.POSITIVE_INFINITY;
}

function isTreeFinding(each: Located): boolean {
  const { check } = each;
  return check === 'root' || check === 'preview' || check === 'contract' || hasCode(each, 'undue-commitment');
}

/** A single differing root was itself altered; several differing roots mean that the moves were. */
function isTreeCause(findings: readonly Located[]): boolean {
  return findings.some(({ check }) => check === 'root') && findings.filter(isTreeFinding).length > 1;
}

const SENTENCES: Partial<Record<CheckName, string>> = {
  origin: 'was signed for an address that is not the service’s',
  age: 'has a signature that was not valid when the service accepted it',
  registration: 'does not match the account of its agent',
  rules: 'was not allowed when it was made',
  withheld: 'is withheld against the rules',
  'service-events': 'records an outcome that was not due',
  transactions: 'records a transaction other than the expected one',
  root: 'commits a root other than that of the moves',
  claims: 'claims an outcome that the chain does not confirm',
  balances: 'records a balance that the wallet did not hold',
  seen: 'is not the one that an agent had seen',
  receipts: 'is not the one that the service promised in a receipt',
};
const OUTSIDE: Partial<Record<CheckName, string>> = {
  preview: 'The service’s merkle-preview is not the root of its lines',
  views: 'The service’s views do not match its lines',
  contract: 'The chain holds a root other than that of the moves',
  checkpoint: 'The published log does not contain the lines',
  witnesses: 'The published log is not cosigned by the witnesses you trust',
};

function toCause(eventIds: readonly number[], findings: readonly Located[]): Cause {
  const own = isTreeCause(findings) ? findings.filter(({ check }) => check === 'root') : findings;
  return { eventIds, sentence: sentenceOf(eventIds, findings), findings: own };
}

function sentenceOf(eventIds: readonly number[], findings: readonly Located[]): string {
  const has = (...names: readonly CheckName[]) => findings.some(({ check }) => names.includes(check));
  const [first] = findings;
  const { check = 'form', finding } = first ?? {};
  const own = capitalized(finding?.sentence ?? '');
  if (isTreeCause(findings)) return 'The moves do not match the committed root: one was altered, added or omitted';
  if (eventIds.length === 0) return OUTSIDE[check] ?? own;
  if (has('order')) return own;
  const event = `Event ${eventIds.join(' or event ')}`;
  if (finding?.code === 'unsigned') return `Event ${eventIds[0]} has no signature`;
  if (has('digest', 'target', 'payload') || (has('signature') && has('chain')))
    return `${event} was altered after it was signed`;
  if (has('signature')) return `${event} is not what its agent signed`;
  if (has('chain')) return `${event} was altered after it was written`;
  return SENTENCES[check] === undefined ? own : `${event} ${SENTENCES[check]}`;
}

function capitalized(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
