// Asks questions of a person at a terminal, or of a program that pipes in the answers. Questions go to standard error, because standard
// output contains only the result.
import { createInterface } from 'node:readline';
import * as v from 'valibot';
import { CommandError, printNotice } from './output.ts';

export interface Question<Answer> {
  readonly text: string;
  /** The option that answers the question in advance. */
  readonly option: string;
  /** The value of that option. */
  readonly given: string | undefined;
  /** The meaning of an empty answer. */
  readonly fallback?: string;
  /** Throws an error that says why an answer is invalid. */
  readonly check: (answer: string) => Promise<Answer>;
}

export class Questions {
  readonly #isSilent: boolean;
  readonly #lines = createInterface({ input: process.stdin });
  readonly #answers = this.#lines[Symbol.asyncIterator]();

  /** If `isSilent`, uses the fallbacks instead of asking. */
  constructor(isSilent: boolean) {
    this.#isSilent = isSilent;
  }

  /** Repeats the question until the answer is valid. Throws if the option's value is invalid. */
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
          `no answer: set ${option}, or answer the questions on standard input; --yes uses the defaults`,
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
