// The operator's limits on a model's moves while the server runs.
import { ClientError } from '../client/error.ts';

export interface AllowanceLimits {
  /** Moves of every kind; Infinity by default. */
  readonly movesMax?: number | undefined;
  /** Chambers that may be opened; Infinity by default. */
  readonly openMax?: number | undefined;
}

export class Allowance {
  readonly #movesMax: number;
  readonly #openMax: number;
  #moves = 0;
  #opened = 0;

  constructor({ movesMax = Number.POSITIVE_INFINITY, openMax = Number.POSITIVE_INFINITY }: AllowanceLimits = {}) {
    this.#movesMax = movesMax;
    this.#openMax = openMax;
  }

  /** Throws CLIENT_ERR_LIMIT if the tool may not act again. */
  require(tool: string): void {
    const problem = (option: string, max: number) =>
      new ClientError('CLIENT_ERR_LIMIT', `the operator’s limit of ${max} (${option}) is reached`);
    if (this.#moves >= this.#movesMax) throw problem('--moves', this.#movesMax);
    if (tool === 'open' && this.#opened >= this.#openMax) throw problem('--max-open', this.#openMax);
  }

  /** Counts a successful call. */
  count(tool: string): void {
    this.#moves++;
    if (tool === 'open') this.#opened++;
  }
}
