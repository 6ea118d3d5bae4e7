// Tells causes from consequences: the auditor runs again with the causes set aside that it knows. Findings that vanish follow
// from them, and further causes are sought among those that remain.
import type { ChamberAudit, SetAside } from '../chamber/chamber-audit.ts';
import type { Effect } from '../chamber/decisions.ts';
import type { Leaves } from '../chamber/sequence.ts';
import type { CheckName, CheckResult, Finding } from './findings.ts';

export interface Cause {
  /** Empty where no event is broken, but a response or the tree as a whole. */
  readonly eventIds: readonly number[];
  /** A sentence for laymen, with a capital and without a full stop. */
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
  /** Findings whose causes were not sought any more. */
  readonly others: readonly Located[];
}

/** Audits the same lines again. Resolves to undefined where they can't be read twice. */
export type Rerun = (aside: SetAside) => Promise<ChamberAudit | undefined>;

/** Each costs a pass over the lines. */
const RERUNS_MAX = 8;

/** Checks of a line by itself: their findings are never consequences. */
const OF_LINE: ReadonlySet<CheckName> = new Set([
  ...(['form', 'order', 'chamber', 'digest', 'signature', 'target', 'once', 'origin', 'age', 'registration'] as const),
]);
/** What these find leaves the line's content as it is. */
const HARMLESS: ReadonlySet<CheckName> = new Set(['origin', 'age', 'registration', 'seen', 'receipts']);
/** Checks of a line with the state or the chain behind it. */
const OF_STATE: ReadonlySet<CheckName> = new Set([
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
  const aside = { events: new Map<number, Effect>(), isTree: false };
  for (let runs = 0; others.length > 0 && runs <= RERUNS_MAX; runs++) {
    const found = nextCauses(others, audit.lineCount);
    causes.push(...found);
    const own = new Set(found.flatMap(({ findings }) => findings));
    others = others.filter((each) => !own.has(each));
    for (const cause of found) setAside(cause, aside);
    if (others.length === 0 || runs === RERUNS_MAX) break;
    const again = await rerun({ ...aside, leaves: leavesOf(audit, aside.events) });
    if (again === undefined) break;
    const kept = new Set(located(again.findings.results()).map(keyOf));
    const firstAltered = Math.min(...aside.events.keys());
    const isKept = (each: Located) =>
      isOfLine(each) ||
      isOfAccount(each) ||
      (kept.has(keyOf(each)) && !isOf(each, aside.events) && !(isOfHistory(each) && subjectOf(each) > firstAltered));
    consequences.push(...others.filter((each) => !isKept(each)));
    others = others.filter(isKept);
  }
  return { causes: causes.sort((a, b) => placeOf(a) - placeOf(b)), consequences, others };
}

/** What happened to the copy, and what is outside the lines, comes after the events. */
function placeOf({ eventIds: [eventId = Number.POSITIVE_INFINITY], findings }: Cause): number {
  return findings.every(isOfCopy) ? Number.MAX_VALUE : eventId;
}

function located(results: readonly CheckResult[]): readonly Located[] {
  return results.flatMap(({ name, findings }) => findings.map((finding) => ({ check: name, finding })));
}

/** Sentences may differ between two runs. */
function keyOf({ check, finding }: Located): string {
  return `${check} ${finding.eventIds.join()}`;
}

function isOf({ finding }: Located, events: ReadonlyMap<number, unknown>): boolean {
  return finding.eventIds.some((eventId) => events.has(eventId));
}

function leavesOf({ trueLeaves }: ChamberAudit, events: ReadonlyMap<number, unknown>): Leaves {
  return new Map([...trueLeaves].filter(([eventId]) => events.has(eventId)));
}

function setAside({ eventIds, findings }: Cause, aside: { events: Map<number, Effect>; isTree: boolean }): void {
  if (findings.every(isHarmless)) return;
  if (eventIds.length === 0 && findings.some(({ check }) => check === 'root')) aside.isTree = true;
  for (const eventId of eventIds) aside.events.set(eventId, effectOf(findings));
}

/** If body and payload agree, the author or the time was altered, and what the event did is unknown. */
function effectOf(findings: readonly Located[]): Effect {
  const has = (name: CheckName) => findings.some(({ check }) => check === name);
  const isOfAnother = findings.some(({ finding }) => finding.sentence.includes('recorded as a move of'));
  if (isOfAnother || has('chamber')) return 'unknown';
  if (has('digest') || has('signature') || has('target')) return 'payload';
  return has('payload') || !has('chain') ? 'request' : 'unknown';
}

/** Two events whose accounts contradict each other are not: one of them may have been altered. */
function isOfLine({ check, finding }: Located): boolean {
  return OF_LINE.has(check) && (check !== 'registration' || finding.eventIds.length === 1);
}

/** Each leaf pins all lines before it, so these follow from whatever was altered there. */
function isOfHistory({ check }: Located): boolean {
  return check === 'seen' || check === 'receipts';
}

/** A receipt of an account, whose lines are read once. */
function isOfAccount({ check, finding }: Located): boolean {
  return check === 'receipts' && finding.eventIds.length === 0;
}

function isHarmless(each: Located): boolean {
  return HARMLESS.has(each.check) || isOfCopy(each);
}

/** Lines are restored before they are checked. */
export function isOfCopy({ finding }: Pick<Located, 'finding'>): boolean {
  return finding.sentence.startsWith('the copy ');
}

/** Everything that is certain without another run, else the first event that nothing explains, else what is outside the lines. */
function nextCauses(findings: readonly Located[], lineCount: number): readonly Cause[] {
  const certain = certainCauses(findings, lineCount);
  if (certain.length > 0) return certain;
  const [first] = findings.filter(({ check }) => OF_STATE.has(check)).sort((a, b) => subjectOf(a) - subjectOf(b));
  if (first !== undefined) {
    const ofTree = findings.filter(isOfTree);
    if (ofTree.includes(first) && isTreeCause(ofTree)) return [toCause([], ofTree)];
    const eventId = subjectOf(first);
    const own = findings.filter((each) => OF_STATE.has(each.check) && subjectOf(each) === eventId);
    return [toCause(Number.isFinite(eventId) ? [eventId] : [], own)];
  }
  const [other] = findings;
  if (other === undefined) return [];
  if (other.check === 'time') return [toCause([subjectOf(other)], [other])];
  if (isOfHistory(other)) {
    const own = findings.filter(isOfHistory);
    const eventId = Math.min(...own.map(subjectOf));
    return [toCause(Number.isFinite(eventId) ? [eventId] : [], own)];
  }
  const own = findings.filter(({ check }) => check === other.check);
  return [toCause([], own)];
}

/** What a check of each line itself finds, by event, and which line a broken link of the chain accuses. */
function certainCauses(findings: readonly Located[], lineCount: number): readonly Cause[] {
  const groups = new Map<number, { readonly ids: readonly number[]; readonly own: Located[] }>();
  const add = (ids: readonly number[], each: Located) => {
    const [first = 0] = ids;
    const group = groups.get(first) ?? { ids, own: [] };
    groups.set(first, group);
    group.own.push(each);
  };
  for (const each of findings) if (isOfLine(each)) add(idsOf(each), each);
  const altered = new Set(groups.keys());
  const suspects = new Set(findings.filter(({ check }) => OF_STATE.has(check)).map(subjectOf));
  const links = findings.filter(({ check }) => check === 'chain').sort((a, b) => subjectOf(a) - subjectOf(b));
  const broken = new Set(links.map(subjectOf));
  for (const link of links) {
    const ids = accusedBy(subjectOf(link), { altered, suspects, broken, lineCount });
    for (const id of ids) altered.add(id);
    add(ids, link);
  }
  const ofState = findings.filter(({ check }) => OF_STATE.has(check));
  return [...groups.values()].map(({ ids, own }) => {
    const isAltered = !own.every(isHarmless);
    return toCause(ids, [...own, ...ofState.filter((each) => isAltered && ids.includes(subjectOf(each)))]);
  });
}

interface Trail {
  /** The events that checks of the line itself show to be altered. */
  readonly altered: ReadonlySet<number>;
  /** The events that contradict the state before them, which other lines may have altered. */
  readonly suspects: ReadonlySet<number>;
  readonly broken: ReadonlySet<number>;
  readonly lineCount: number;
}

/** The event does not hold the hash of the one before it: that one was altered, unless this one was. */
function accusedBy(eventId: number, trail: Trail): readonly number[] {
  const { altered, suspects, broken, lineCount } = trail;
  if (altered.has(eventId - 1) || suspects.has(eventId - 1)) return [eventId - 1];
  if (eventId === 1 || broken.has(eventId + 1) || altered.has(eventId)) return [eventId];
  return eventId < lineCount ? [eventId - 1] : [eventId - 1, eventId];
}

function idsOf(each: Located): readonly number[] {
  const { check, finding } = each;
  const isRange = check === 'order' && !finding.sentence.includes(' comes after ');
  return isRange ? finding.eventIds : [subjectOf(each)];
}

/** The event that is wrong; infinite where there is none. */
function subjectOf({ check, finding: { eventIds } }: Located): number {
  const isOfLater = check === 'once' || check === 'chain' || check === 'time';
  return (isOfLater ? eventIds.at(-1) : eventIds[0]) ?? Number.POSITIVE_INFINITY;
}

function isOfTree({ check, finding: { sentence } }: Located): boolean {
  return check === 'root' || check === 'preview' || check === 'contract' || sentence.includes('calls commitChamber(');
}

/** A root that is wrong in one place only was altered there. */
function isTreeCause(findings: readonly Located[]): boolean {
  return findings.some(({ check }) => check === 'root') && findings.filter(isOfTree).length > 1;
}

/** What a check says of its event, for laymen. */
const SENTENCES: Partial<Record<CheckName, string>> = {
  origin: 'was signed for an address that is not the service’s',
  age: 'carries a signature that was not valid when it was accepted',
  registration: 'does not match the account of its agent',
  rules: 'was not allowed when it was made',
  'service-events': 'records what was not due',
  transactions: 'records a transaction that is not the one due',
  root: 'commits another root than that of the moves',
  claims: 'claims what the chain does not confirm',
  balances: 'records a balance that the wallet did not hold',
  seen: 'is not the one that an agent had seen',
  receipts: 'is not the one that the service promised in a receipt',
};
const OUTSIDE: Partial<Record<CheckName, string>> = {
  preview: 'The service’s merkle-preview is not the root of its lines',
  views: 'The service’s views do not match its lines',
  contract: 'The chain holds another root than that of the moves',
  checkpoint: 'The log that the service publishes does not hold the lines',
  witnesses: 'The log that the service publishes is not cosigned by the witnesses that you trust',
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
  if (isTreeCause(findings))
    return 'The moves are not those whose root was committed: one was altered, added or left out';
  if (eventIds.length === 0) return OUTSIDE[check] ?? own;
  if (has('order')) return own;
  const event = `Event ${eventIds.join(' or event ')}`;
  if (has('signature') && own.includes(' has no signature')) return `Nobody signed event ${eventIds[0]}`;
  if (has('digest', 'target', 'payload') || (has('signature') && has('chain')))
    return `${event} was altered after it was signed`;
  if (has('signature')) return `${event} is not what its agent signed`;
  if (has('chain')) return `${event} was altered after it was written`;
  return SENTENCES[check] === undefined ? own : `${event} ${SENTENCES[check]}`;
}

function capitalized(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
