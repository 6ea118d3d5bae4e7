// Answers from the chain for commands. The chain is asked outside of batches, once nothing else rejects the command, and the decision is
// made again with the answer. So a slow chain delays only commands that need it.
import type { ChainAnswer, ChainQuestion, ChainReader, ReadChain } from '../moves/chain-question.ts';
import { invalid, unavailable } from '../vocabulary/errors.ts';

/** Interrupts a decision that needs an answer from the chain. It is not a response. */
export class NeedsChain extends Error {
  readonly question: ChainQuestion;

  constructor(question: ChainQuestion) {
    super(`the chain must be asked: ${question.kind}`);
    this.question = question;
  }
}

/** What a command is decided with before the chain has answered for it. */
export const NO_ANSWER: ReadChain = (question) => {
  throw new NeedsChain(question);
};

function keyOf(question: ChainQuestion): string {
  return JSON.stringify(question);
}

/** More commands would wait in vain, and fill the commit queue. */
const READINGS_MAX = 256;

export class ChainReadings {
  readonly #reader: ChainReader;
  /** Equal concurrent questions share an answer. */
  readonly #underWay = new Map<string, Promise<ChainAnswer>>();
  #waiting = 0;

  constructor(reader: ChainReader = NO_CHAIN) {
    this.#reader = reader;
  }

  /** Resolves with a reader that repeats the chain's answer or error, and throws NeedsChain for any other question. */
  async read(question: ChainQuestion): Promise<ReadChain> {
    const key = keyOf(question);
    const [outcome] = await Promise.allSettled([this.#ask(question, key)]);
    return (other) => {
      if (keyOf(other) !== key) throw new NeedsChain(other);
      if (outcome.status === 'rejected') throw outcome.reason;
      // The union does not express that an answer has its question's kind.
      return outcome.value as never;
    };
  }

  async #ask(question: ChainQuestion, key: string): Promise<ChainAnswer> {
    if (this.#waiting >= READINGS_MAX) throw unavailable('too many requests wait for the chain, retry');
    this.#waiting++;
    try {
      const answer = this.#underWay.get(key) ?? this.#reader.answer(question);
      this.#underWay.set(key, answer);
      return await answer;
    } finally {
      this.#waiting--;
      this.#underWay.delete(key);
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
