// What commands need of the chain. It is read outside of batches, once all else about the command is decided: the decision is then
// made again with the answer. A chain that is slow delays only those who asked.
import type { ChainAnswer, ChainQuestion, ChainReader, ReadChain } from '../moves/chain-question.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';

/** A question and how it was answered. */
export type ChainReading =
  | { readonly question: ChainQuestion; readonly answer: ChainAnswer }
  | { readonly question: ChainQuestion; readonly error: unknown };

/** Ends a decision that needs an answer of the chain: no response, but a question. */
export class NeedsChain extends Error {
  readonly question: ChainQuestion;

  constructor(question: ChainQuestion) {
    super(`the chain must be asked: ${question.kind}`);
    this.question = question;
  }
}

/** Answers from what was read for the command; throws NeedsChain where the question is another one than was asked. */
export function readChainFor({ reading }: { readonly reading: ChainReading | undefined }): ReadChain {
  return (question) => {
    if (reading === undefined || keyOf(reading.question) !== keyOf(question)) throw new NeedsChain(question);
    if ('error' in reading) throw reading.error;
    // The answer to a question is of its kind.
    return reading.answer as never;
  };
}

function keyOf(question: ChainQuestion): string {
  return JSON.stringify(question);
}

/** More commands would wait in vain, and take the places of moves that need no chain. */
const READINGS_MAX = 256;

export class ChainReadings {
  readonly #reader: ChainReader;
  /** Equal questions that are under way have one answer. */
  readonly #underWay = new Map<string, Promise<ChainReading>>();
  #waiting = 0;

  constructor(reader: ChainReader = NO_CHAIN) {
    this.#reader = reader;
  }

  async read(question: ChainQuestion): Promise<ChainReading> {
    if (this.#waiting >= READINGS_MAX) return { question, error: unavailable('too many requests wait for the chain') };
    this.#waiting++;
    const key = keyOf(question);
    const reading = this.#underWay.get(key) ?? this.#ask(question);
    this.#underWay.set(key, reading);
    try {
      return await reading;
    } finally {
      this.#waiting--;
      this.#underWay.delete(key);
    }
  }

  async #ask(question: ChainQuestion): Promise<ChainReading> {
    try {
      return { question, answer: await this.#reader.answer(question) };
    } catch (error) {
      return { question, error };
    }
  }
}

function unavailable(problem: string): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', `${problem}, retry`, { retryAfterSeconds: 1 });
}

const NO_CHAIN: ChainReader = {
  answer: async ({ kind }) => {
    if (kind === 'signature') return null;
    throw kind === 'contract'
      ? invalid('admission.token: this service has no chain')
      : unavailable('this service has no chain now');
  },
};
