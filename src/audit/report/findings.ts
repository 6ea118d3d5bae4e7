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

/** What is wrong with a subject, or what the caller has to decide about it; undefined where it is right. */
export type Outcome = string | { readonly doubt: string } | undefined;
/** `open` says why it can't be judged. */
export type Problem = Outcome | { readonly open: string };

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
}

export class Findings {
  readonly #tallies = new Map(CHECK_NAMES.map((name) => [name, new CheckTally()]));

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
    else this.notEvaluated(named + problem.open, name);
  }

  /** Counts one subject as for the caller to decide; the reason names the option. */
  undecided(name: CheckName, reason: string): void {
    this.#tally(name).undecided++;
    this.note(name, shortened(reason, SENTENCE_CHARS_MAX));
  }

  /** Counts one subject of each of the checks as impossible to judge. */
  notEvaluated(reason: string, ...names: readonly CheckName[]): void {
    for (const name of names) {
      this.#tally(name).notEvaluated++;
      this.note(name, shortened(reason, SENTENCE_CHARS_MAX));
    }
  }

  /** The first note of a check is kept. */
  note(name: CheckName, note: string): void {
    this.#tally(name).note ??= note;
  }

  results(): readonly CheckResult[] {
    return CHECK_NAMES.map((name) => {
      const { findings, note, ...counts } = this.#tally(name);
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
