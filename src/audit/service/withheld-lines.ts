// Detects old lines that a service withheld from the first read. A service could otherwise prevent the comparison of its views with
// all lines by releasing lines late.
import { READ_LIMITS } from '../../reading/limits.ts';
import { positionOfLine } from '../../tlog/leaf-index.ts';
import { instantOf, type Millis } from '../../vocabulary/values.ts';
import { isDue } from '../context.ts';
import type { RawLine } from '../line/input.ts';
import type { Findings } from '../report/findings.ts';

const utf8 = new TextDecoder();

interface FirstRead {
  /** When the read began, by the auditor's clock. */
  readonly readFrom: Millis;
  /** When the last page was served, by the service's clock; NaN if unknown. */
  readonly servedAt: Millis;
}

export class WithheldLines {
  readonly #first: FirstRead;
  #contradiction: string | undefined;
  #doubt: string | undefined;

  constructor(first: FirstRead) {
    this.#first = first;
  }

  /** A line written within a minute before the first read may have become visible after it. */
  take({ bytes }: RawLine): void {
    const position = positionOfLine(utf8.decode(bytes), READ_LIMITS.jsonValuesMax);
    const at = typeof position?.ts === 'string' ? instantOf(position.ts) : Number.NaN;
    const { readFrom, servedAt } = this.#first;
    const withheld = `event ${position?.eventId} was not served at first, although it is dated more than a minute earlier`;
    if (isDue(at, { now: () => servedAt })) this.#contradiction ??= `${withheld}, by the service’s own clock`;
    else if (isDue(at, { now: () => readFrom }))
      this.#doubt ??= `${withheld} by your clock: if that is wrong, state the time with --now`;
  }

  report(findings: Findings): void {
    if (this.#contradiction !== undefined) findings.judge('views', [], this.#contradiction);
    else if (this.#doubt !== undefined) findings.undecided('views', this.#doubt);
  }
}
