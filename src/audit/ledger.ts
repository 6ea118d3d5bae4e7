// What was checked and what came of it: every check ends as verified, broken or not evaluated, and the counts add up.

/** The checks in the order of the report, each with what holds when it is verified. */
const CHECKS = {
  form: 'every line is one canonical event record',
  order: 'events are numbered 1, 2, 3 … without gaps',
  chain: 'every line holds the hash of the line before it',
  time: 'times never fall',
  chamber: 'all lines are of one chamber',
  digest: 'every body has the digest that was signed',
  signature: 'every move is signed by its agent',
  target: 'every signature covers the move that is recorded',
  origin: 'all requests were signed for one address',
  once: 'every signature is used once',
  age: 'signatures were fresh when the service took them',
  rules: 'every move was allowed when it was made',
  payload: 'every event says what its request asked for',
  annex: 'service events come in their order, for graduates only',
  transactions: 'the signed transactions make the calls that were due',
  root: 'the committed root is the root of the moves',
  preview: 'merkle-preview is the root of the moves',
  views: 'the service’s views are what the lines say',
  contract: 'the registry on the chain holds the root',
  receipts: 'the chain confirms the commitment and the tokens',
  registration: 'signers are registered, with the wallets recorded',
} as const;

export type CheckName = keyof typeof CHECKS;
const CHECK_NAMES = Object.keys(CHECKS) as readonly CheckName[];
export type Verdict = 'verified' | 'broken' | 'not evaluated';

export interface Finding {
  /** Every event that the finding names, ascending. */
  readonly eventIds: readonly number[];
  /** One sentence. */
  readonly sentence: string;
}

export interface CheckResult {
  readonly name: CheckName;
  readonly title: string;
  readonly verdict: Verdict;
  /** How many things (lines, answers …) it was about, by outcome. */
  readonly counts: { readonly verified: number; readonly broken: number; readonly notEvaluated: number };
  readonly findings: readonly Finding[];
  /** How many findings more there are than are listed. */
  readonly findingsLeftOut: number;
  /** Why something was not evaluated, or what else there is to know. */
  readonly note: string | null;
}

/** A log that is broken throughout must not fill the memory. */
const FINDINGS_MAX = 1_000;
/** Sentences quote the log, whose texts may be of any length. */
const SENTENCE_CHARS_MAX = 600;

interface Page {
  verified: number;
  broken: number;
  notEvaluated: number;
  note: string | null;
  readonly findings: Finding[];
}

export class Ledger {
  readonly #pages = new Map<CheckName, Page>(CHECK_NAMES.map((name) => [name, newPage()]));

  verified(name: CheckName): void {
    this.#page(name).verified++;
  }

  judge(name: CheckName, holds: boolean, { eventIds, sentence }: Finding): void {
    if (holds) this.verified(name);
    else this.broken(name, eventIds, sentence);
  }

  broken(name: CheckName, eventIds: readonly number[], sentence: string): void {
    const page = this.#page(name);
    page.broken++;
    if (page.findings.length < FINDINGS_MAX) {
      const ascending = [...new Set(eventIds)].sort((a, b) => a - b);
      page.findings.push({ eventIds: ascending, sentence: excerpt(sentence) });
    }
  }

  /** One thing that could not be judged; the first reason is told. */
  notEvaluated(name: CheckName, reason: string): void {
    const page = this.#page(name);
    page.notEvaluated++;
    page.note ??= excerpt(reason);
  }

  /** Something to know beside the verdict; it yields to no reason already told. */
  note(name: CheckName, note: string): void {
    this.#page(name).note ??= note;
  }

  results(): readonly CheckResult[] {
    return CHECK_NAMES.map((name) => toResult(name, this.#page(name)));
  }

  #page(name: CheckName): Page {
    return this.#pages.get(name) as Page;
  }
}

function excerpt(text: string): string {
  return text.length > SENTENCE_CHARS_MAX ? `${text.slice(0, SENTENCE_CHARS_MAX)}…` : text;
}

function newPage(): Page {
  return { verified: 0, broken: 0, notEvaluated: 0, note: null, findings: [] };
}

const NOTHING_THERE = 'there is nothing of the kind';

function toResult(name: CheckName, { findings, note, ...counts }: Page): CheckResult {
  const verdict = verdictOf(counts);
  return {
    name,
    title: CHECKS[name],
    verdict,
    counts,
    findings,
    findingsLeftOut: counts.broken - findings.length,
    note: note ?? (verdict === 'not evaluated' ? NOTHING_THERE : null),
  };
}

function verdictOf({ verified, broken, notEvaluated }: CheckResult['counts']): Verdict {
  if (broken > 0) return 'broken';
  return notEvaluated > 0 || verified === 0 ? 'not evaluated' : 'verified';
}
