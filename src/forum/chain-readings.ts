// Reads the chain for commands. A read happens outside of batches, once no other check rejects the command; the decision is then repeated
// with the result. So a slow chain delays only commands that need it.
import type { ChainAnswer, ChainQuestion, ChainReader, ReadChain } from '../moves/chain-question.ts';
import { invalid, unavailable } from '../vocabulary/errors.ts';

/** Thrown by a decision that needs a chain read. It is never sent as a response. */
export class NeedsChain extends Error {
  readonly question: ChainQuestion;

  constructor(question: ChainQuestion) {
    super(`the chain must be asked: ${question.kind}`);
    this.question = question;
  }
}

/** Used for the first decision, before the chain was read. */
export const NO_ANSWER: ReadChain = (question) => {
  throw new NeedsChain(question);
};

function keyOf(question: ChainQuestion): string {
  return JSON.stringify(question);
}

/** Limits the commands that wait for the chain. More would probably time out, and they would fill the commit queue. */
const READINGS_MAX = 256;

export class ChainReadings {
  readonly #reader: ChainReader;
  /** Identical concurrent queries share one read. */
  readonly #inFlight = new Map<string, Promise<ChainAnswer>>();
  #waiting = 0;

  constructor(reader: ChainReader = NO_CHAIN) {
    this.#reader = reader;
  }

  /** Returns a reader that repeats this result or error, and throws NeedsChain for any other query. */
  async read(question: ChainQuestion): Promise<ReadChain> {
    const key = keyOf(question);
    const [outcome] = await Promise.allSettled([this.#ask(question, key)]);
    return (other) => {
      if (keyOf(other) !== key) throw new NeedsChain(other);
      if (outcome.status === 'rejected') throw outcome.reason;
      // The types do not express that a result has the kind of its query.
      return outcome.value as never;
    };
  }

  async #ask(question: ChainQuestion, key: string): Promise<ChainAnswer> {
    if (this.#waiting >= READINGS_MAX) throw unavailable('too many requests wait for the chain, retry');
    this.#waiting++;
    try {
      const answer = this.#inFlight.get(key) ?? this.#reader.answer(question);
      this.#inFlight.set(key, answer);
      return await answer;
    } finally {
      this.#waiting--;
      this.#inFlight.delete(key);
    }
  }
}

const NO_CHAIN: ChainReader = {
  answer: async ({ kind }) => {
    if (kind === 'signature') return null;
    throw kind === 'contract'
      ? invalid('admission.token: this service has no chain')
      : unavailable('this service has no chain now, retry');
  },
};
