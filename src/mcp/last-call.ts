// What a seat was called with last. A result that was lost shows in nothing but the repetition of its call: an equal one, with no other in
// between. Nobody makes a move twice alike without a look in between; a call with `again` is not equal to one without.
import { canonicalJson } from '../vocabulary/json.ts';

export class LastCall {
  #last: string | undefined;

  /** Returns whether the call that begins repeats the one before it. */
  begin(tool: string, input: object): boolean {
    const call = canonicalJson([tool, input]);
    const isRepetition = call === this.#last;
    this.#last = call;
    return isRepetition;
  }
}
