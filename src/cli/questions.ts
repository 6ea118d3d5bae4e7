// Questions to a person at a terminal, or to a program that writes the answers into a pipe. They are printed on standard error,
// because standard output contains only the result.
import { createInterface } from 'node:readline';
import * as v from 'valibot';
import { CommandError, printNotice } from './output.ts';

export interface Question<Answer> {
  readonly text: string;
  /** The option that answers the question in advance. */
  readonly option: string;
  readonly given: string | undefined;
  /** The meaning of an empty answer. */
  readonly fallback?: string;
  /** Throws an error about a wrong answer. */
  readonly check: (answer: string) => Promise<Answer>;
}

export class Questions {
  readonly #isSilent: boolean;
  readonly #lines = createInterface({ input: process.stdin });
  readonly #answers = this.#lines[Symbol.asyncIterator]();

  /** `isSilent` asks nothing and uses the fallbacks. */
  constructor(isSilent: boolean) {
    this.#isSilent = isSilent;
  }

  /** Repeats the question until the answer is valid. A wrong option is an error. */
  async ask<Answer>({ text, option, given, fallback, check }: Question<Answer>): Promise<Answer> {
    if (given !== undefined) return await check(given).catch((error) => rejectOption(option, error));
    if (this.#isSilent && fallback !== undefined) return await check(fallback);
    if (this.#isSilent) throw new CommandError('usage', `set ${option}: it has no default`);
    while (true) {
      process.stderr.write(`${text}${fallback ? ` [${fallback}]` : ''}: `);
      const { value: line, done } = await this.#answers.next();
      if (done)
        throw new CommandError(
          'usage',
          `no answer: set ${option}, or answer the questions on standard input; --yes takes the defaults`,
        );
      const answer = line.trim() || fallback;
      try {
        if (answer !== undefined) return await check(answer);
      } catch (error) {
        printNotice(false, `  ${(error as Error).message}`);
      }
    }
  }

  close(): void {
    this.#lines.close();
  }
}

function rejectOption(option: string, error: unknown): never {
  throw v.isValiError(error) ? new CommandError('usage', `${option}: ${error.message}`) : error;
}
