// The checks and their outcomes: every check ends as verified, broken, undecided or not evaluated, and the counts add up.
// Undecided is what the caller can decide by an option; not evaluated is what needs more input.
import { canonicalJson } from '../../vocabulary/json.ts';

/** The checks in the order of the report, each with what holds when it is verified. */
const CHECKS = {
  form: 'every line is one canonical event record',
  order: 'events are numbered 1, 2, 3 … without gaps',
  chain: 'every line holds the hash of the line before it',
  time: 'timestamps never decrease',
  chamber: 'all lines belong to one chamber',
  digest: 'every body matches the digest that was signed',
  signature: 'every move is signed by its agent',
  target: 'every signature covers the recorded move',
  origin: 'all requests were signed for one origin',
  once: 'every signature is used once',
  age: 'signatures were fresh when the service accepted them',
  rules: 'every move was allowed when it was made',
  payload: 'every event matches its request',
  'service-events': 'service events are in order and about graduated ideas only',
  transactions: 'the signed transactions make the expected calls',
  root: 'the committed root is the root of the moves',
  preview: 'merkle-preview is the root of the moves',
  views: 'the views of the service match the lines',
  contract: 'the registry on the chain holds the root',
  claims: 'the chain confirms the commitment and the tokens',
  balances: 'the chain confirms the balances that members had to hold',
  registration: 'signers are registered with the recorded wallets',
  seen: 'the lines are those that agents had seen when they moved',
  receipts: 'the lines are those that your receipts promise',
  checkpoint: 'the published log holds the lines',
  witnesses: 'the witnesses that you trust have cosigned the published log',
} as const;

export type CheckName = keyof typeof CHECKS;
export const CHECK_NAMES = Object.keys(CHECKS) as readonly CheckName[];
export type Verdict = 'verified' | 'broken' | 'undecided' | 'not evaluated';

export interface Finding {
  /** Every event that the finding names, ascending. */
  readonly eventIds: readonly number[];
  readonly sentence: string;
}

/**
 * Why a subject is not evaluated, which never lowers the verdict. Nothing else excuses a check: a contradiction is broken, and what the
 * caller can decide is undecided.
 */
export type Reason = { readonly why: string } & (
  | { readonly needs: MissingInput }
  /** The finding that explains it is of one of these checks; if none of them is broken, the subject is. */
  | { readonly follows: readonly CheckName[] }
  | { readonly limit: Limit }
);

/** What would decide it, or the state of things in which it can be decided. */
type MissingInput = 'accounts' | 'chain' | 'later lines' | 'receipts' | 'service' | 'witnesses';
/** What no input shows. The README lists them among the things that lines can't show. */
type Limit =
  | 'large log'
  | 'earlier release'
  | 'unsigned registration'
  | 'long ago'
  | 'another service'
  | 'another contract';

/** The checks that show that an event is missing, unreadable or altered: nothing after it can be judged by the state. */
export const OF_LOSS = ['form', 'order', 'chain'] as const satisfies readonly CheckName[];

/** What is wrong with a subject, or what the caller has to decide about it; undefined where it is right. */
export type Outcome = string | { readonly doubt: string } | undefined;
export type Problem = Outcome | Reason;

/** The verdict of one subject, and why it is not verified. */
export function verdictOfProblem(problem: Problem): { readonly verdict: Verdict; readonly reason: string | null } {
  if (problem === undefined) return { verdict: 'verified', reason: null };
  if (typeof problem === 'string') return { verdict: 'broken', reason: problem };
  if ('doubt' in problem) return { verdict: 'undecided', reason: problem.doubt };
  return { verdict: 'not evaluated', reason: problem.why };
}

/** The gravest of independent problems of one subject: none hides another one that is graver. */
export function gravest(...problems: readonly Problem[]): Problem {
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
  /** How many subjects (lines, responses …) had each outcome. */
  readonly counts: Readonly<Record<'verified' | 'broken' | 'undecided' | 'notEvaluated', number>>;
  readonly findings: readonly Finding[];
  readonly findingsLeftOut: number;
  /** Why something was undecided or not evaluated, or other information besides the verdict. */
  readonly note: string | null;
}

/** A log that is broken throughout must not fill the memory. */
const FINDINGS_MAX = 1_000;
/** Sentences quote the log, whose texts may be of any length. */
const SENTENCE_CHARS_MAX = 600;
const VALUE_CHARS_MAX = 80;

class CheckTally {
  verified = 0;
  broken = 0;
  undecided = 0;
  notEvaluated = 0;
  note: string | null = null;
  readonly findings: Finding[] = [];
  /** Subjects that are excused by findings, by the checks that have to have one of them. */
  readonly following = new Map<string, { readonly reason: Following; count: number }>();
}

type Following = Extract<Reason, { readonly follows: readonly CheckName[] }>;

export interface FindingsOptions {
  /** The findings of the lines, where these are of something else about them. */
  readonly ofLines?: Findings | undefined;
  /** Whether an earlier pass has the findings that are set aside in this one, which excuse as before. */
  readonly isAgain?: boolean | undefined;
}

export class Findings {
  readonly #tallies = new Map(CHECK_NAMES.map((name) => [name, new CheckTally()]));
  readonly #ofLines: Findings | undefined;
  readonly #isAgain: boolean;

  constructor({ ofLines, isAgain = false }: FindingsOptions = {}) {
    this.#ofLines = ofLines;
    this.#isAgain = isAgain;
  }

  /** Counts one subject: as broken if there is a problem, which is the finding's sentence, otherwise as verified. */
  judge(name: CheckName, eventIds: readonly number[], problem?: string | false): void {
    const tally = this.#tally(name);
    if (!problem) tally.verified++;
    else tally.broken++;
    if (!problem || tally.findings.length >= FINDINGS_MAX) return;
    const ascending = [...new Set(eventIds)].sort((a, b) => a - b);
    tally.findings.push({ eventIds: ascending, sentence: shortened(problem, SENTENCE_CHARS_MAX) });
  }

  /** Counts one subject by what was found of it; each sentence begins with its name. */
  settle(name: CheckName, eventIds: readonly number[], problem: Problem, named: string): void {
    if (typeof problem !== 'object') this.judge(name, eventIds, problem && named + problem);
    else if ('doubt' in problem) this.undecided(name, named + problem.doubt);
    else this.notEvaluated({ ...problem, why: named + problem.why }, name);
  }

  /** Counts one subject as for the caller to decide; the reason names the option. */
  undecided(name: CheckName, reason: string): void {
    this.#tally(name).undecided++;
    this.note(name, shortened(reason, SENTENCE_CHARS_MAX));
  }

  /** Counts one subject of each of the checks as impossible to judge. */
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

  /** The first note of a check is kept. */
  note(name: CheckName, note: string): void {
    this.#tally(name).note ??= note;
  }

  results(): readonly CheckResult[] {
    return CHECK_NAMES.map((name) => {
      const { following, findings: own, note, ...tallied } = this.#tally(name);
      const { count, findings: ofUnexcused } = this.#unexcused([...following.values()]);
      const counts = {
        ...tallied,
        broken: tallied.broken + count,
        notEvaluated: tallied.notEvaluated - count,
      };
      const findings = [...own, ...ofUnexcused];
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

  /** Whether a subject of the check is broken. */
  isBroken(name: CheckName): boolean {
    return this.#tally(name).broken > 0 || this.#ofLines?.isBroken(name) === true;
  }

  /** Subjects that no finding excuses count as broken, so that no mistake of a check makes a log sound. */
  #unexcused(following: readonly { readonly reason: Following; readonly count: number }[]) {
    const left = this.#isAgain
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

/** One text for each member of `expected`, and with `isExact` of `actual` too, that differs; an absent member counts as null. */
export function differences(expected: object, actual: object, isExact: boolean): readonly string[] {
  const names = new Set([...Object.keys(expected), ...(isExact ? Object.keys(actual) : [])]);
  return [...names].flatMap((name) => {
    const [expectedMember, member] = [memberOf(expected, name), memberOf(actual, name)];
    if (expectedMember === member) return [];
    const [due, found] = [canonicalJson(expectedMember), canonicalJson(member)];
    if (due === found) return [];
    return [`${name} is ${shortened(found, VALUE_CHARS_MAX)} and not ${shortened(due, VALUE_CHARS_MAX)}`];
  });
}

function memberOf(value: object, name: string): unknown {
  return (Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : null) ?? null;
}

function shortened(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}
