// The checks and their outcomes: verified, broken, undecided or not evaluated. The caller can settle an undecided check with an option;
// a check that is not evaluated may need further input.
import { canonicalJson } from '../../vocabulary/json.ts';

/** In the order of the report, each with the meaning of a verified check. */
const CHECKS = {
  form: 'every line is one canonical event record',
  order: 'events are numbered 1, 2, 3 … without gaps',
  chain: 'every line contains the hash of the previous line',
  time: 'timestamps never decrease',
  chamber: 'all lines belong to one chamber',
  digest: 'every body matches its signed digest',
  signature: 'every move is signed by its agent',
  target: 'every signature covers the recorded move',
  origin: 'all requests were signed for one origin',
  once: 'every signature is used once',
  age: 'signatures were fresh when the service accepted them',
  rules: 'every move was allowed when it was made',
  payload: 'every event matches its request',
  withheld: 'stubs withhold only permitted texts, and the service signed them',
  'service-events': 'service events are in order and for graduated ideas only',
  transactions: 'the signed transactions make the expected calls',
  root: 'the committed root is the root of the moves',
  preview: 'merkle-preview is the root of the moves',
  views: 'the views of the service match the lines',
  contract: 'the registry on the chain holds the root',
  claims: 'the chain confirms the commitment and the tokens',
  balances: 'the chain confirms the required balances of the members',
  registration: 'signers are registered with the recorded wallets',
  seen: 'the lines match the events that agents had seen when they moved',
  receipts: 'the lines match your receipts',
  checkpoint: 'the published log contains the lines',
  witnesses: 'the witnesses you trust have cosigned the published log',
} as const;

export type CheckName = keyof typeof CHECKS;
export const CHECK_NAMES = Object.keys(CHECKS) as readonly CheckName[];
export type Verdict = 'verified' | 'broken' | 'undecided' | 'not evaluated';

export interface Finding {
  /** Every event that the finding names, ascending. */
  readonly eventIds: readonly number[];
  /** For people; programs use the check and the code. */
  readonly sentence: string;
  readonly code?: FindingCode;
}

/** Distinguishes findings of one check that have different causes. */
export type FindingCode =
  /** form: a tool changed the copy. */
  | 'copy'
  /** order: the line belongs earlier. */
  | 'late'
  /** signature: the move has no signed request. */
  | 'unsigned'
  /** signature: a key other than the agent's signed the request. */
  | 'another-signer'
  /** transactions: the transaction commits a wrong root, or a commitment that was not due. */
  | 'undue-commitment';

/**
 * Why a subject is not evaluated, which never lowers the verdict. There are no other reasons: a contradiction counts as broken, and a
 * question that the caller can decide as undecided.
 */
export type Reason = { readonly why: string } & (
  | { readonly needs: MissingInput }
  /** A finding of one of these checks explains why; if none of them is broken, the subject itself counts as broken. */
  | { readonly follows: readonly CheckName[] }
  | { readonly limit: Limit }
);

/** The input that would decide the subject. */
type MissingInput = 'accounts' | 'chain' | 'later lines' | 'originals' | 'receipts' | 'service' | 'witnesses';
/** Facts that no input shows; the README lists them. */
type Limit =
  | 'large log'
  | 'earlier release'
  | 'unsigned registration'
  | 'long ago'
  | 'another service'
  | 'another contract';

/** Checks that find missing, unreadable or altered events, after which the state is unknown. */
export const LOSS_CHECKS = ['form', 'order', 'chain'] as const satisfies readonly CheckName[];

/** A subject's problem, or an open question for the caller; undefined if the subject is verified. */
export type Outcome = string | { readonly doubt: string } | undefined;
export type Problem = Outcome | Reason;

export function verdictOfProblem(problem: Problem): { readonly verdict: Verdict; readonly reason: string | null } {
  if (problem === undefined) return { verdict: 'verified', reason: null };
  if (typeof problem === 'string') return { verdict: 'broken', reason: problem };
  if ('doubt' in problem) return { verdict: 'undecided', reason: problem.doubt };
  return { verdict: 'not evaluated', reason: problem.why };
}

/** Returns the most severe of one subject's independent problems: broken, then undecided, then not evaluated. */
export function mostSevere(...problems: readonly Problem[]): Problem {
  const isDoubt = (problem: Problem) => typeof problem === 'object' && 'doubt' in problem;
  return (
    problems.find((problem) => typeof problem === 'string') ??
    problems.find(isDoubt) ??
    problems.find((problem) => problem !== undefined)
  );
}

export interface CheckResult {
  readonly name: CheckName;
  readonly title: string;
  readonly verdict: Verdict;
  /** The number of subjects (lines, responses …) with each outcome. */
  readonly counts: Readonly<Record<'verified' | 'broken' | 'undecided' | 'notEvaluated', number>>;
  readonly findings: readonly Finding[];
  readonly findingsLeftOut: number;
  /** Why a subject was undecided or not evaluated, or other information. */
  readonly note: string | null;
}

/** Bounds the memory for a log that is broken throughout. */
const FINDINGS_MAX = 1_000;
/** Sentences quote texts of the log, which may be long. */
const SENTENCE_CHARS_MAX = 600;
const VALUE_CHARS_MAX = 80;

class CheckTally {
  verified = 0;
  broken = 0;
  undecided = 0;
  notEvaluated = 0;
  note: string | null = null;
  readonly findings: Finding[] = [];
  /** Subjects excused by findings of other checks, counted by those checks. */
  readonly following = new Map<string, { readonly reason: Following; count: number }>();
}

type Following = Extract<Reason, { readonly follows: readonly CheckName[] }>;

export interface FindingsOptions {
  /** The findings about the lines, if the new object's findings are about data derived from the lines. */
  readonly lineFindings?: Findings | undefined;
  /** Whether this is a further pass, in which findings of the first pass excuse subjects. */
  readonly isRerun?: boolean | undefined;
}

export class Findings {
  readonly #tallies = new Map(CHECK_NAMES.map((name) => [name, new CheckTally()]));
  readonly #lineFindings: Findings | undefined;
  readonly #isRerun: boolean;

  constructor({ lineFindings, isRerun = false }: FindingsOptions = {}) {
    this.#lineFindings = lineFindings;
    this.#isRerun = isRerun;
  }

  /** Counts one subject: as broken if there is a problem, which becomes the finding's sentence; otherwise as verified. */
  judge(
    name: CheckName,
    eventIds: readonly number[],
    problem?: string | false,
    { code }: { readonly code?: FindingCode | undefined } = {},
  ): void {
    const tally = this.#tally(name);
    if (!problem) tally.verified++;
    else tally.broken++;
    if (!problem || tally.findings.length >= FINDINGS_MAX) return;
    const ascending = [...new Set(eventIds)].sort((a, b) => a - b);
    const sentence = shortened(problem, SENTENCE_CHARS_MAX);
    tally.findings.push({ eventIds: ascending, sentence, ...(code && { code }) });
  }

  /** Counts one subject according to its problem. `named` is the beginning of the sentence. */
  assess(name: CheckName, eventIds: readonly number[], problem: Problem, named: string): void {
    if (typeof problem !== 'object') this.judge(name, eventIds, problem && named + problem);
    else if ('doubt' in problem) this.undecided(name, named + problem.doubt);
    else this.notEvaluated({ ...problem, why: named + problem.why }, name);
  }

  /** Counts one subject as undecided; the reason must name the option that decides it. */
  undecided(name: CheckName, reason: string): void {
    this.#tally(name).undecided++;
    this.note(name, shortened(reason, SENTENCE_CHARS_MAX));
  }

  notEvaluated(reason: Reason, ...names: readonly CheckName[]): void {
    const why = shortened(reason.why, SENTENCE_CHARS_MAX);
    for (const name of names) {
      const tally = this.#tally(name);
      tally.notEvaluated++;
      this.note(name, why);
      if (!('follows' in reason)) continue;
      const key = reason.follows.join();
      const following = tally.following.get(key) ?? { reason: { ...reason, why }, count: 0 };
      following.count++;
      tally.following.set(key, following);
    }
  }

  /** Sets the check's note unless it has one. */
  note(name: CheckName, note: string): void {
    this.#tally(name).note ??= note;
  }

  results(): readonly CheckResult[] {
    return CHECK_NAMES.map((name) => {
      const { following, findings: own, note, ...tallied } = this.#tally(name);
      const { count, findings: unexcusedFindings } = this.#unexcused([...following.values()]);
      const counts = {
        ...tallied,
        broken: tallied.broken + count,
        notEvaluated: tallied.notEvaluated - count,
      };
      const findings = [...own, ...unexcusedFindings];
      const verdict = verdictOf(counts);
      return {
        name,
        title: CHECKS[name],
        verdict,
        counts,
        findings,
        findingsLeftOut: counts.broken - findings.length,
        note: note ?? (verdict === 'not evaluated' ? 'there was nothing to check' : null),
      };
    });
  }

  isBroken(name: CheckName): boolean {
    return this.#tally(name).broken > 0 || this.#lineFindings?.isBroken(name) === true;
  }

  /** Counts subjects that no finding excuses as broken, so that a bug in a check can't make a log sound. */
  #unexcused(following: readonly { readonly reason: Following; readonly count: number }[]) {
    const left = this.#isRerun
      ? []
      : following.filter(({ reason }) => !reason.follows.some((name) => this.isBroken(name)));
    return {
      count: left.reduce((sum, { count }) => sum + count, 0),
      findings: left.map(({ reason }) => ({ eventIds: [], sentence: `no finding explains why ${reason.why}` })),
    };
  }

  #tally(name: CheckName): CheckTally {
    return this.#tallies.get(name) as CheckTally;
  }
}

function verdictOf({ verified, broken, undecided, notEvaluated }: CheckResult['counts']): Verdict {
  if (broken > 0) return 'broken';
  if (undecided > 0) return 'undecided';
  return notEvaluated > 0 || verified === 0 ? 'not evaluated' : 'verified';
}

/** Describes each member of `expected` that differs in `actual`; if `isExact`, also extra members. An absent member counts as null. */
export function differences(expected: object, actual: object, isExact: boolean): readonly string[] {
  const names = new Set([...Object.keys(expected), ...(isExact ? Object.keys(actual) : [])]);
  return [...names].flatMap((name) => {
    const [expectedMember, member] = [memberOf(expected, name), memberOf(actual, name)];
    if (expectedMember === member) return [];
    const [due, found] = [canonicalJson(expectedMember), canonicalJson(member)];
    if (due === found) return [];
    return [`${name} is ${shortened(found, VALUE_CHARS_MAX)}, not ${shortened(due, VALUE_CHARS_MAX)}`];
  });
}

function memberOf(value: object, name: string): unknown {
  return (Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : null) ?? null;
}

function shortened(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}
