// Remembers a seat's previous call. Only a repetition, an equal call with no other in between, shows that a result was lost: nobody makes
// the same move twice without reading in between. A call with `again` does not equal one without.
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
