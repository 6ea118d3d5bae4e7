// Remembers the previous call of a server. Only a repetition (an equal call with no other call in between) shows that a result was lost,
// because nobody makes the same move twice without reading in between. A call with `again` is never a repetition of one without.
import { canonicalJson } from '../vocabulary/json.ts';

export class LastCall {
  #last: string | undefined;

  /** Returns true if the call repeats the previous one. */
  begin(tool: string, input: object): boolean {
    const call = canonicalJson([tool, input]);
    const isRepetition = call === this.#last;
    this.#last = call;
    return isRepetition;
  }
}
